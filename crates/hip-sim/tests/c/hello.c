/* Says what the first call returned. */
#include "check.h"
#include "hipsim.h"

int main(void) {
    int count = -1;
    hipError_t error = hipGetDeviceCount(&count);
    printf("%s %d\n", hipGetErrorName(error), count);
    return 0;
}
