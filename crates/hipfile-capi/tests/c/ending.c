/* The process ends, or forks, while eight threads read and write. Ways: exit, return, quick, fork, fork-exec. */

#include <pthread.h>
#include <sys/wait.h>

#include "use.h"

enum { THREADS = 8 };

static const char *folder;
static int started, ending;

static void *endless(void *argument) {
    long number = (long)(intptr_t)argument;
    char path[4096];
    snprintf(path, sizeof path, "%s/ending-%ld-%ld", folder, (long)getpid(), number);
    int fd = make_file(path, 256 * KIB, 1, 0);
    hipFileHandle_t handle = register_file(fd);
    char *memory = (char *)device_memory(256 * KIB);
    for (long round = 0;; round++) {
        ssize_t read = hipFileRead(handle, memory, 256 * KIB, 0, 0);
        ssize_t written = hipFileWrite(handle, memory, 64 * KIB, 64 * KIB, 64 * KIB);
        /* As the process ends, HIP or the library may have ended first. */
        if (read != 256 * KIB || written != 64 * KIB) {
            if (!__atomic_load_n(&ending, __ATOMIC_SEQ_CST)) {
                fprintf(stderr, "read %zd, wrote %zd, errno %d\n", read, written, errno);
                _exit(3);
            }
            pause();
        }
        if (round == 3) __atomic_add_fetch(&started, 1, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

/* The child has nothing of its parent's, and can begin anew. Its HIP is its own business: this one's does not survive. */
static void child(void) {
    if (hipFileUseCount() != 0) _exit(10);
    hipFileHandle_t handle = NULL;
    hipFileDescr_t description;
    description.type = hipFileHandleTypeOpaqueFD;
    description.handle.fd = open("/proc/self/exe", O_RDONLY);
    if (hipFileHandleRegister(&handle, &description).err != hipFileSuccess) _exit(11);
    if (hipFileUseCount() != 1) _exit(12);
    hipFileStatsLevel1_t stats;
    if (hipFileGetStatsL1(&stats).err != hipFileSuccess || stats.read_ops.ok != 0) _exit(13);
    if (hipFileDriverClose().err != hipFileSuccess) _exit(14);
    exit(0);
}

int main(int count_of_arguments, char **arguments) {
    EXPECT(count_of_arguments, 3);
    folder = arguments[1];
    const char *way = arguments[2];
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&threads[i], NULL, endless, (void *)(intptr_t)i), 0);
    }
    while (__atomic_load_n(&started, __ATOMIC_SEQ_CST) < THREADS) usleep(500);
    if (strncmp(way, "fork", 4) == 0) {
        for (int i = 0; i < 20; i++) {
            pid_t pid = fork();
            TRUE(pid >= 0);
            if (pid == 0) {
                if (strcmp(way, "fork") == 0) child();
                execl("/bin/true", "true", (char *)NULL);
                _exit(127);
            }
            int status = 0;
            EXPECT(waitpid(pid, &status, 0), pid);
            EXPECT(status, 0);
        }
    }
    __atomic_store_n(&ending, 1, __ATOMIC_SEQ_CST);
    if (strcmp(way, "exit") == 0) exit(0);
    if (strcmp(way, "quick") == 0) _exit(0);
    return 0;
}
