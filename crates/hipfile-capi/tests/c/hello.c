/* Prints the version that is reported, and the properties' idea of it. */

#include "use.h"

int main(void) {
    unsigned major, minor, patch;
    hipFileDriverProps_t props;
    GOOD(hipFileGetVersion(&major, &minor, &patch));
    GOOD(hipFileDriverGetProperties(&props));
    EXPECT(props.nvfs.major_version, major);
    EXPECT(props.nvfs.minor_version, minor);
    GOOD(hipFileDriverOpen());
    printf("%u.%u.%u\n", major, minor, patch);
    return 0;
}
