/* The statistics of another process, as ais-stats gets them. */

#include <signal.h>
#include <sys/wait.h>

#include "use.h"

/* From an internal header of AMD's. */
typedef struct hipFileStatsContext hipFileStatsContext_t;
typedef int hipFileStatsError_t;
#ifdef __cplusplus
extern "C" {
#endif
hipFileStatsError_t hipFileStatsCreateContext(hipFileStatsContext_t **context, int targetPid);
void hipFileStatsCloseContext(hipFileStatsContext_t *context);
hipFileStatsError_t hipFileStatsConnectToTargetProcess(hipFileStatsContext_t *context);
hipFileStatsError_t hipFileStatsPollTargetProcess(const hipFileStatsContext_t *context, bool block);
hipFileStatsError_t hipFileStatsGenerateReport(const hipFileStatsContext_t *context, int fd);
#ifdef __cplusplus
}
#endif

static void target(const char *folder, int go) {
    char path[4096], byte;
    snprintf(path, sizeof path, "%s/stats", folder);
    int fd = make_file(path, 1 * MIB, 1, 0);
    EXPECT(read(go, &byte, 1), 1);
    hipFileHandle_t handle = register_file(fd);
    char *memory = (char *)device_memory(1 * MIB);
    GOOD(hipFileBufRegister(memory, 1 * MIB, 0));
    EXPECT(hipFileRead(handle, memory, 1 * MIB, 0, 0), 1 * MIB);
    EXPECT(hipFileWrite(handle, memory, 5000, 100, 0), 5000);
    EXPECT(read(go, &byte, 1), 1);
    exit(0);
}

int main(int count_of_arguments, char **arguments) {
    EXPECT(count_of_arguments, 2);
    hipFileStatsContext_t *context = NULL;
    EXPECT(hipFileStatsCreateContext(NULL, getpid()), 1);
    EXPECT(hipFileStatsCreateContext(&context, 0), 1);
    EXPECT(hipFileStatsCreateContext(&context, -1), 1);
    EXPECT(hipFileStatsCreateContext(&context, 0x7fffffff), 2);
    EXPECT(context, NULL);
    EXPECT(hipFileStatsConnectToTargetProcess(NULL), 1);
    EXPECT(hipFileStatsPollTargetProcess(NULL, false), 1);
    EXPECT(hipFileStatsGenerateReport(NULL, 1), 1);
    hipFileStatsCloseContext(NULL);

    /* One that ends and has not used hipFile. */
    pid_t idle = fork();
    if (idle == 0) {
        usleep(100000);
        _exit(0);
    }
    EXPECT(hipFileStatsCreateContext(&context, idle), 0);
    EXPECT(hipFileStatsConnectToTargetProcess(context), 3);
    EXPECT(hipFileStatsPollTargetProcess(context, true), 0);
    EXPECT(hipFileStatsGenerateReport(context, 1), 4);
    hipFileStatsCloseContext(context);
    EXPECT(waitpid(idle, NULL, 0), idle);

    int go[2];
    EXPECT(pipe(go), 0);
    pid_t pid = fork();
    if (pid == 0) target(arguments[1], go[0]);
    EXPECT(hipFileStatsCreateContext(&context, pid), 0);
    EXPECT(hipFileStatsPollTargetProcess(context, false), 3);
    EXPECT(write(go[1], "g", 1), 1);
    EXPECT(hipFileStatsConnectToTargetProcess(context), 0);
    EXPECT(hipFileStatsPollTargetProcess(context, false), 3);
    EXPECT(write(go[1], "g", 1), 1);
    EXPECT(hipFileStatsPollTargetProcess(context, true), 0);
    EXPECT(waitpid(pid, NULL, 0), pid);
    /* After its end, all of it. */
    EXPECT(hipFileStatsGenerateReport(context, -1), 1);
    EXPECT(hipFileStatsGenerateReport(context, 1000), 4);
    EXPECT(hipFileStatsGenerateReport(context, 1), 0);
    hipFileStatsCloseContext(context);
    return 0;
}
