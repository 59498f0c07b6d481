/* Writes beyond its memory, so that a test can see whether anybody notices. */

#include <stdlib.h>

int main(int count, char **arguments) {
    char *memory = (char *)malloc(16);
    (void)arguments;
    memory[15 + count] = 1;
    int found = memory[3];
    free(memory);
    return found;
}
