/* A program that loads the library itself, uses it, closes it, and loads it again. Not linked with it. */

#include <dirent.h>
#include <dlfcn.h>

#include "use.h"

static int count_in(const char *folder) {
    DIR *entries = opendir(folder);
    TRUE(entries != NULL);
    int count = 0;
    while (readdir(entries) != NULL) count++;
    closedir(entries);
    return count;
}

/* The library's own; HIP has others. */
static int threads(void) {
    DIR *tasks = opendir("/proc/self/task");
    TRUE(tasks != NULL);
    int count = 0;
    for (struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
        char path[512], name[64] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *file = fopen(path, "r");
        if (file == NULL) continue;
        if (fgets(name, sizeof name, file) != NULL && strncmp(name, "hipfile", 7) == 0) count++;
        fclose(file);
    }
    closedir(tasks);
    return count;
}

#define FIND(name) __typeof__(&name) find_##name = (__typeof__(&name))dlsym(library, #name)

static void use(const char *path, int is_first) {
    void *library = dlopen("libhipfile.so", RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL) fprintf(stderr, "%s\n", dlerror());
    TRUE(library != NULL);
    FIND(hipFileGetVersion);
    FIND(hipFileHandleRegister);
    FIND(hipFileRead);
    FIND(hipFileUseCount);
    FIND(hipFileBatchIOSetUp);
    FIND(hipFileBatchIOSubmit);
    FIND(hipFileBatchIOGetStatus);
    FIND(hipFileDriverGetProperties);
    FIND(hipFileGetStatsL1);
    /* Nothing is started by loading it, nor by what needs no driver. */
    unsigned major = 9;
    hipFileDriverProps_t props;
    hipFileStatsLevel1_t stats;
    GOOD(find_hipFileGetVersion(&major, NULL, NULL));
    EXPECT(major, 0);
    GOOD(find_hipFileGetStatsL1(&stats));
    EXPECT(threads(), 0);
    GOOD(find_hipFileDriverGetProperties(&props));
    EXPECT(find_hipFileUseCount(), 0);

    int fd = open(path, O_RDWR);
    hipFileDescr_t description;
    hipFileHandle_t handle = NULL;
    description.type = hipFileHandleTypeOpaqueFD;
    description.handle.fd = fd;
    GOOD(find_hipFileHandleRegister(&handle, &description));
    void *memory = device_memory(64 * KIB);
    EXPECT(find_hipFileRead(handle, memory, 64 * KIB, 0, 0), 64 * KIB);
    expect_device(memory, 64 * KIB, 0, 1);
    /* Through pinned memory, whatever the host can. */
    EXPECT(find_hipFileRead(handle, memory, 100, 1, 0), 100);
    /* Workers exist from here on. */
    hipFileBatchHandle_t batch = NULL;
    hipFileIOParams_t entry;
    memset(&entry, 0, sizeof entry);
    entry.mode = hipFileBatch;
    entry.u.batch.devPtr_base = memory;
    entry.u.batch.size = 4 * KIB;
    entry.fh = handle;
    GOOD(find_hipFileBatchIOSetUp(&batch, 1));
    GOOD(find_hipFileBatchIOSubmit(batch, 1, &entry, 0));
    unsigned count = 1;
    hipFileIOEvents_t event;
    GOOD(find_hipFileBatchIOGetStatus(batch, 1, &count, &event, NULL));
    EXPECT(event.ret, 4 * KIB);
    EXPECT(threads(), 2); /* one that does it, one that shows the statistics */
    EXPECT(dlclose(library), 0);
    EXPECT(threads(), 0);
    /* Pinned memory is HIP's again, although the driver was not closed. */
    TRUE(hipsim_calls("hipHostMalloc") > 0);
    EXPECT(hipsim_calls("hipHostFree"), hipsim_calls("hipHostMalloc"));
    TRUE(dlopen("libhipfile.so", RTLD_LAZY | RTLD_NOLOAD) == NULL || !is_first);
    OK(hipFree(memory));
    close(fd);
}

int main(int count_of_arguments, char **arguments) {
    EXPECT(count_of_arguments, 2);
    char path[4096];
    snprintf(path, sizeof path, "%s/load", arguments[1]);
    close(make_file(path, 64 * KIB, 1, 0));
    use(path, 1);
    int descriptors = count_in("/proc/self/fd");
    for (int i = 0; i < 20; i++) use(path, 0);
    /* What a load leaves behind does not grow with their number. */
    EXPECT(count_in("/proc/self/fd"), descriptors);
    return 0;
}
