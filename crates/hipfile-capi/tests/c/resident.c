/* What a process that does I/O takes over the program's own memory, with 64 threads at once: less than 24 MiB. */

#include <pthread.h>

#include "use.h"

enum { THREADS = 64, LIMIT_KIB = 24 * 1024 };

static hipFileHandle_t handle;
static char *memory;
static pthread_barrier_t barrier;

/* Everything but pages that are the files of libraries: those are shared with other processes. */
static long resident_kib(void) {
    FILE *file = fopen("/proc/self/status", "r");
    if (file == NULL) return -1;
    char line[256];
    long sum = 0, kib;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "RssAnon: %ld", &kib) == 1 || sscanf(line, "RssShmem: %ld", &kib) == 1) sum += kib;
    fclose(file);
    return sum;
}

static void *work(void *nothing) {
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 3; i++) EXPECT(hipFileRead(handle, memory, 8 * MIB, 0, 0), 8 * MIB);
    EXPECT(hipFileRead(handle, memory, 100, 1, 0), 100);
    pthread_barrier_wait(&barrier);
    return nothing;
}

int main(int count_of_arguments, char **arguments) {
    EXPECT(count_of_arguments, 2);
    char path[4096];
    snprintf(path, sizeof path, "%s/resident", arguments[1]);
    int fd = make_file(path, 8 * MIB, 1, 0);
    memory = (char *)device_memory(8 * MIB);
    wipe(memory, 1, 8 * MIB);
    pthread_t threads[THREADS];
    EXPECT(pthread_barrier_init(&barrier, NULL, THREADS + 1), 0);
    for (int i = 0; i < THREADS; i++) EXPECT(pthread_create(&threads[i], NULL, work, NULL), 0);
    pthread_barrier_wait(&barrier);
    long before = resident_kib();
    handle = register_file(fd);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    long more = resident_kib() - before;
    for (int i = 0; i < THREADS; i++) EXPECT(pthread_join(threads[i], NULL), 0);
    printf("%ld KiB\n", more);
    TRUE(before > 0 && more > 0);
    TRUE(more < LIMIT_KIB);
    return 0;
}
