/* The rules of registration, each row of each table: what a driver, a file, a buffer and a stream answer to what. */

#include "use.h"

static const char *folder;

static int file(const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return make_file(path, 8 * KIB, 1, 0);
}

static hipFileError_t register_as(hipFileHandle_t *handle, unsigned type, int fd) {
    hipFileDescr_t description;
    memset(&description, 0, sizeof description);
    description.type = (hipFileFileHandleType_t)type;
    description.handle.fd = fd;
    return hipFileHandleRegister(handle, &description);
}

static void words(void) {
    TRUE(hipFileGetOpErrorString(hipFileSuccess) != NULL);
    const char *unknown = hipFileGetOpErrorString((hipFileOpError_t)4711);
    TRUE(unknown != NULL);
    for (int code = 5001; code < 5039; code++) {
        const char *text = hipFileGetOpErrorString((hipFileOpError_t)code);
        TRUE(text != NULL && text[0] != 0);
        int is_listed = code != 5021 && code != 5032;
        EXPECT(strcmp(text, unknown) != 0, is_listed);
        TRUE(text == HIPFILE_ERRSTR(-code));
    }
    EXPECT(strcmp(hipFileGetOpErrorString((hipFileOpError_t)-1), unknown), 0);
}

static void version(void) {
    unsigned major = 9, minor = 9, patch = 9;
    GOOD(hipFileGetVersion(NULL, NULL, NULL));
    GOOD(hipFileGetVersion(&major, NULL, NULL));
    GOOD(hipFileGetVersion(NULL, &minor, &patch));
    EXPECT(major, HIPFILE_VERSION_MAJOR);
    EXPECT(minor, HIPFILE_VERSION_MINOR);
    EXPECT(patch, HIPFILE_VERSION_PATCH);
}

static void count(void) {
    EXPECT(hipFileUseCount(), 0);
    FAILS(hipFileDriverClose(), hipFileDriverNotInitialized);
    GOOD(hipFileDriverOpen());
    GOOD(hipFileDriverOpen());
    EXPECT(hipFileUseCount(), 2);
    GOOD(hipFileDriverClose());
    GOOD(hipFileDriverClose());
    FAILS(hipFileDriverClose(), hipFileDriverNotInitialized);
    EXPECT(hipFileUseCount(), 0);
}

static void files(void) {
    hipFileHandle_t handle = NULL, other = NULL;
    hipFileDescr_t description;
    memset(&description, 0, sizeof description);
    int fd = file("a"), second = file("b");
    FAILS(hipFileHandleRegister(NULL, &description), hipFileInvalidValue);
    FAILS(hipFileHandleRegister(&handle, NULL), hipFileInvalidValue);
    for (unsigned type = 0; type < 6; type++) {
        if (type != hipFileHandleTypeOpaqueFD) FAILS(register_as(&handle, type, fd), hipFileIONotSupported);
    }
    FAILS(register_as(&handle, 0xffffffff, fd), hipFileIONotSupported);
    /* AMD's library has 5030 for these. */
    FAILS(register_as(&handle, 1, -1), hipFileInvalidValue);
    FAILS(register_as(&handle, 1, 1000000), hipFileInvalidValue);
    EXPECT(hipFileUseCount(), 0);
    EXPECT(handle, NULL);

    GOOD(register_as(&handle, 1, fd));
    TRUE(handle != NULL);
    EXPECT(hipFileUseCount(), 1);
    FAILS(register_as(&other, 1, fd), hipFileHandleAlreadyRegistered);
    GOOD(register_as(&other, 1, second));
    TRUE(other != handle);
    EXPECT(hipFileUseCount(), 1);

    hipFileHandleDeregister(NULL);
    hipFileHandleDeregister(&description);
    hipFileHandleDeregister(handle);
    hipFileHandleDeregister(handle);
    GOOD(register_as(&handle, 1, fd));

    /* What was opened without being asked for and what was asked for is one count. */
    GOOD(hipFileDriverOpen());
    EXPECT(hipFileUseCount(), 2);
    GOOD(hipFileDriverClose());
    EXPECT(hipFileUseCount(), 1);
    GOOD(hipFileDriverClose());
    EXPECT(hipFileUseCount(), 0);

    /* The last close has dropped every file. */
    hipFileHandleDeregister(handle);
    GOOD(register_as(&handle, 1, fd));
    GOOD(hipFileDriverClose());
    close(fd);
    close(second);
}

static void buffers(void) {
    char *memory = (char *)device_memory(64 * KIB);
    void *host = NULL, *managed = NULL;
    char stack[64];
    OK(hipHostMalloc(&host, PAGE, 0));
    OK(hipMallocManaged(&managed, PAGE, hipMemAttachGlobal));

    FAILS(hipFileBufDeregister(memory), hipFileDriverClosing);
    FAILS(hipFileBufRegister(NULL, PAGE, 0), hipFileInvalidValue);
    EXPECT(hipFileUseCount(), 1); /* raised by a call that failed: upstream's tests want it so */
    FAILS(hipFileBufDeregister(NULL), hipFileMemoryNotRegistered);
    FAILS(hipFileBufDeregister(memory), hipFileMemoryNotRegistered);

    GOOD(hipFileBufRegister(memory, 64 * KIB, 0));
    FAILS(hipFileBufRegister(memory, 64 * KIB, 0), hipFileMemoryAlreadyRegistered);
    FAILS(hipFileBufRegister(memory, PAGE, 0), hipFileMemoryAlreadyRegistered);
    /* Inside an allocation, over another registration, with flags that mean nothing, and with no length. */
    GOOD(hipFileBufRegister(memory + PAGE, 2 * PAGE, 0x7fffffff));
    GOOD(hipFileBufRegister(memory + PAGE + 1, 64 * KIB - PAGE - 1, -1));
    GOOD(hipFileBufRegister(memory + 2 * PAGE, 0, 0));
    FAILS(hipFileBufRegister(memory + 3 * PAGE, 64 * KIB - 3 * PAGE + 1, 0), hipFileHipPointerRangeError);
    FAILS(hipFileBufRegister(memory + 3 * PAGE, SIZE_MAX, 0), hipFileHipPointerRangeError);
    FAILS(hipFileBufRegister(memory + 3 * PAGE, SIZE_MAX - (uintptr_t)memory, 0), hipFileHipPointerRangeError);
    FAILS(hipFileBufDeregister(memory + 3 * PAGE), hipFileMemoryNotRegistered);
    GOOD(hipFileBufDeregister(memory + 2 * PAGE));
    GOOD(hipFileBufDeregister(memory));
    FAILS(hipFileBufDeregister(memory), hipFileMemoryNotRegistered);

    FAILS(hipFileBufRegister(stack, sizeof stack, 0), hipFileHipMemoryTypeInvalid);
    GOOD(hipFileDriverClose());

    /* The last close has dropped every buffer. */
    FAILS(hipFileBufDeregister(memory + PAGE), hipFileDriverClosing);
    GOOD(hipFileBufRegister(memory + PAGE, PAGE, 0));
    GOOD(hipFileDriverClose());
    OK(hipFree(memory));
    OK(hipHostFree(host));
    OK(hipFree(managed));
}

static void transfers(void) {
    char *memory = (char *)device_memory(64 * KIB), *loose = (char *)device_memory(16 * KIB);
    int fd = file("c");
    /* With the driver closed nothing else is looked at. */
    FAILS_WITH(hipFileRead(NULL, NULL, 0, -1, -1), EINVAL);
    FAILS_WITH(hipFileWrite(NULL, NULL, 0, -1, -1), EINVAL);
    EXPECT(hipFileUseCount(), 0);

    hipFileHandle_t handle = register_file(fd);
    GOOD(hipFileBufRegister(memory, 32 * KIB, 0));
    GOOD(hipFileBufRegister(memory + 40 * KIB, 0, 0));
    errno = EXDEV;
    EXPECT(hipFileRead(NULL, NULL, 1, -1, -1), -hipFileHandleNotRegistered);
    EXPECT(hipFileRead(memory, memory, 1, 0, 0), -hipFileHandleNotRegistered);
    EXPECT(hipFileRead(handle, NULL, 1, -1, -1), -hipFileInvalidValue);
    EXPECT(errno, EXDEV);
    FAILS_WITH(hipFileRead(handle, memory, 1, -1, 0), EINVAL);
    FAILS_WITH(hipFileRead(handle, memory, 1, 0, -1), EINVAL);
    FAILS_WITH(hipFileWrite(handle, memory, 1, INT64_MIN, 0), EINVAL);
    errno = EXDEV;
    EXPECT(hipFileRead(handle, memory, 1, 0, 32 * KIB), -hipFileInvalidValue);
    EXPECT(hipFileRead(handle, memory, 0, 0, 32 * KIB), -hipFileInvalidValue);
    EXPECT(hipFileRead(handle, memory, 32 * KIB + 1, 0, 0), -hipFileInvalidValue);
    EXPECT(hipFileRead(handle, memory, SIZE_MAX, 0, 1), -hipFileInvalidValue);
    EXPECT(hipFileRead(handle, memory, 1, 0, INT64_MAX), -hipFileInvalidValue);
    EXPECT(hipFileRead(handle, memory + 40 * KIB, 0, 0, 0), -hipFileInvalidValue); /* of length zero */
    EXPECT(hipFileRead(handle, memory, 0, 0, 32 * KIB - 1), 0);
    EXPECT(errno, EXDEV);

    /* Memory that is not registered counts from its address to the end of its allocation. */
    EXPECT(hipFileRead(handle, loose, 8 * KIB, 0, 0), 8 * KIB);
    expect_device(loose, 8 * KIB, 0, 1);
    EXPECT(hipFileRead(handle, loose + 12 * KIB, 4 * KIB, 4 * KIB, 0), 4 * KIB);
    expect_device(loose + 12 * KIB, 4 * KIB, 4 * KIB, 1);
    EXPECT(hipFileRead(handle, loose + 12 * KIB, 4 * KIB + 1, 0, 0), -hipFileInvalidValue);
    /* So does an address inside a registered buffer. */
    EXPECT(hipFileRead(handle, memory + 4 * KIB, 8 * KIB, 0, 28 * KIB), 8 * KIB);
    expect_device(memory + 32 * KIB, 8 * KIB, 0, 1);

    hipFileHandleDeregister(handle);
    EXPECT(hipFileRead(handle, memory, 1, 0, 0), -hipFileHandleNotRegistered);
    GOOD(hipFileDriverClose());
    close(fd);
    OK(hipFree(memory));
    OK(hipFree(loose));
}

static void streams(void) {
    hipStream_t stream;
    OK(hipStreamCreate(&stream));
    FAILS(hipFileStreamRegister(stream, 0x10), hipFileInvalidValue);
    FAILS(hipFileStreamRegister(stream, 0xffffffff), hipFileInvalidValue);
    FAILS(hipFileStreamDeregister(stream), hipFileInvalidValue);
    for (unsigned flags = 0; flags <= HIPFILE_STREAM_FLAGS_MASK; flags++) {
        GOOD(hipFileStreamRegister(stream, flags));
        FAILS(hipFileStreamRegister(stream, flags), hipFileInvalidValue);
        GOOD(hipFileStreamDeregister(stream));
    }
    GOOD(hipFileStreamRegister(NULL, 0));
    FAILS(hipFileStreamRegister(NULL, 0), hipFileInvalidValue);
    GOOD(hipFileStreamDeregister(NULL));
    EXPECT(hipFileUseCount(), 0);
    OK(hipStreamDestroy(stream));
}

int main(int count_of_arguments, char **arguments) {
    EXPECT(count_of_arguments, 2);
    folder = arguments[1];
    words();
    version();
    count();
    files();
    buffers();
    transfers();
    streams();
    return 0;
}
