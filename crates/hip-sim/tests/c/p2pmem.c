/* One allocation from memory of 8 KiB, and bytes in it. */
#include "check.h"
#include "hipsim.h"

int main(void) {
    char *memory, *more;
    size_t available, total;
    OK(hipMemGetInfo(&available, &total));
    EXPECT(total, 8192);
    OK(hipMalloc((void **)&memory, 8192));
    EXPECT(hipMalloc((void **)&more, 1), hipErrorOutOfMemory);
    OK(hipMemcpy(memory + 1, "peer to peer", 12, hipMemcpyHostToDevice));
    OK(hipFree(memory));
    OK(hipMemGetInfo(&available, &total));
    EXPECT(available, 8192);
    return 0;
}
