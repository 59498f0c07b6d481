/* Writes generation after generation over a file until it is killed; and with "check" says whether each block is whole. */

#include "use.h"

enum { BLOCKS = 512 };

/* Every word of a block is its number and the generation that wrote it. */
static void make_blocks(uint64_t *words, uint64_t generation) {
    for (uint64_t i = 0; i < BLOCKS * PAGE / 8; i++) words[i] = (i / (PAGE / 8)) << 40 | generation;
}

int main(int count_of_arguments, char **arguments) {
    EXPECT(count_of_arguments, 4);
    const char *path = arguments[1];
    uint64_t *words = (uint64_t *)aligned_alloc(PAGE, BLOCKS * PAGE);
    if (strcmp(arguments[2], "check") == 0) {
        int fd = open(path, O_RDONLY);
        EXPECT(pread(fd, words, BLOCKS * PAGE, 0), BLOCKS * PAGE);
        uint64_t oldest = UINT64_MAX, newest = 0;
        for (uint64_t i = 0; i < BLOCKS * PAGE / 8; i++) {
            uint64_t first = words[i / (PAGE / 8) * (PAGE / 8)];
            EXPECT(words[i], first);
            EXPECT(first >> 40, i / (PAGE / 8));
            uint64_t generation = first & ((1ull << 40) - 1);
            if (generation < oldest) oldest = generation;
            if (generation > newest) newest = generation;
        }
        /* Calls come one after the other, and so do their blocks. */
        TRUE(newest - oldest <= 1);
        printf("%llu\n", (unsigned long long)newest);
        return 0;
    }
    int is_async = strcmp(arguments[2], "async") == 0;
    int fd = open(path, O_RDWR | O_CREAT | (arguments[3][0] == 'd' ? O_DIRECT : 0), 0600);
    TRUE(fd >= 0);
    char *memory = (char *)device_memory(BLOCKS * PAGE);
    hipFileHandle_t handle = register_file(fd);
    for (uint64_t generation = 1;; generation++) {
        make_blocks(words, generation);
        OK(hipMemcpy(memory, words, BLOCKS * PAGE, hipMemcpyHostToDevice));
        if (is_async) {
            size_t size = BLOCKS * PAGE;
            hoff_t zero = 0;
            ssize_t written = -1;
            GOOD(hipFileWriteAsync(handle, memory, &size, &zero, &zero, &written, NULL));
            OK(hipStreamSynchronize(NULL));
            EXPECT(written, BLOCKS * PAGE);
        } else {
            EXPECT(hipFileWrite(handle, memory, BLOCKS * PAGE, 0, 0), BLOCKS * PAGE);
        }
        if (generation == 1) {
            printf("go\n");
            fflush(stdout);
        }
    }
}
