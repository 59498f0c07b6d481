/* What programs do to a library inside them: one function for each, by its name. */

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "use.h"

static const char *folder;
static int file;
static hipFileHandle_t handle;
static char *memory;

static int new_file(const char *name, unsigned seed, int flags) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return make_file(path, 256 * KIB, seed, flags);
}

static hipFileError_t try_register(int fd, hipFileHandle_t *made) {
    hipFileDescr_t description;
    description.type = hipFileHandleTypeOpaqueFD;
    description.handle.fd = fd;
    return hipFileHandleRegister(made, &description);
}

/* Threads are cancelled while they are inside. */
static void *endless_read(void *nothing) {
    for (;;) {
        EXPECT(hipFileRead(handle, memory, 256 * KIB, 0, 0), 256 * KIB);
        pthread_testcancel();
    }
    return nothing;
}

static void *endless_registration(void *nothing) {
    for (int fd = new_file("cancelled", 1, 0);;) {
        hipFileHandleDeregister(register_file(fd));
        pthread_testcancel();
    }
    return nothing;
}

static void cancel(void) {
    for (int i = 0; i < 40; i++) {
        pthread_t thread;
        void *result = NULL;
        EXPECT(pthread_create(&thread, NULL, i % 2 ? endless_read : endless_registration, NULL), 0);
        usleep(500 + (unsigned)i * 211);
        EXPECT(pthread_cancel(thread), 0);
        EXPECT(pthread_join(thread, &result), 0);
        TRUE(result == PTHREAD_CANCELED);
    }
    EXPECT(hipFileRead(handle, memory, 256 * KIB, 0, 0), 256 * KIB);
    /* What the thread had is as it was. */
    int state = -1;
    EXPECT(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state), 0);
    EXPECT(state, PTHREAD_CANCEL_ENABLE);
}

/* A child uses its parent's handle after it has registered a file of its own. */
static void child(void) {
    int other = new_file("child", 2, 0);
    pid_t pid = fork();
    TRUE(pid >= 0);
    if (pid == 0) {
        hipFileHandle_t own = NULL;
        if (try_register(other, &own).err != hipFileSuccess) _exit(10);
        if (own == handle) _exit(11);
        _exit(hipFileRead(handle, memory, 4 * KIB, 0, 0) == -hipFileHandleNotRegistered ? 0 : 12);
    }
    int status = 0;
    EXPECT(waitpid(pid, &status, 0), pid);
    EXPECT(status, 0);
}

/* Nobody reads standard error any more, where the first fallback is said. */
static void unread(void) {
    int ends[2];
    EXPECT(pipe(ends), 0);
    EXPECT(dup2(ends[1], 2), 2);
    close(ends[0]);
    close(ends[1]);
    int level = hipFileSetParameterString(hipFileParamLoggingLevel, "debug").err;
    EXPECT(level, hipFileSuccess);
    EXPECT(hipFileRead(handle, memory, 256 * KIB, 0, 0), 256 * KIB);
    sigset_t pending;
    EXPECT(sigpending(&pending), 0);
    EXPECT(sigismember(&pending, SIGPIPE), 0);
}

/* Standard input, output and error are closed: what is printed there must not end in a file. */
static void closed(void) {
    int saved = fcntl(2, F_DUPFD, 100), fd = new_file("closed", 1, O_DIRECT);
    for (int i = 0; i < 3; i++) close(i);
    hipFileHandle_t own = NULL;
    int registered = try_register(fd, &own).err;
    int taken = 0;
    for (int i = 0; i < 3; i++) taken += fcntl(i, F_GETFD) != -1;
    dup2(saved, 2);
    EXPECT(registered, hipFileSuccess);
    EXPECT(taken, 0);
}

/* No file may become longer, which is none of a reader's business. */
static void limited(void) {
    struct rlimit none = {0, 0};
    EXPECT(setrlimit(RLIMIT_FSIZE, &none), 0);
    EXPECT(hipFileRead(handle = register_file(file), memory, 256 * KIB, 0, 0), 256 * KIB);
}

/* Whoever asks for the statistics cannot be let in. */
static double processor_time(void) {
    struct timespec time;
    EXPECT(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time), 0);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void forbidden(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_accept4, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof rules[0], rules};
    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
        fprintf(stderr, "skipped, because there is no seccomp here: %s\n", strerror(errno));
        return;
    }
    struct sockaddr_un address;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "AISSTATS%08x", (unsigned)getpid());
    int asks = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT(connect(asks, (struct sockaddr *)&address, sizeof address), 0);
    double before = processor_time();
    usleep(500 * 1000);
    double spent = processor_time() - before;
    if (spent > 0.1) fprintf(stderr, "%f s of processor time\n", spent);
    TRUE(spent <= 0.1);
}

/* A file that the program was given, or opened when it had more rights. */
static void given(void) {
    int fds[] = {new_file("given", 1, 0), new_file("given-direct", 1, O_DIRECT)};
    for (int i = 0; i < 2; i++) EXPECT(fchmod(fds[i], 0), 0);
    if (geteuid() == 0) EXPECT(setuid(65534), 0);
    for (int i = 0; i < 2; i++) {
        hipFileHandle_t own = register_file(fds[i]);
        wipe(memory, 0, 256 * KIB);
        EXPECT(hipFileRead(own, memory, 256 * KIB, 0, 0), 256 * KIB);
        expect_device(memory, 256 * KIB, 0, 1);
    }
}

/* A file that the program has a lease on, as file servers do: opening it waits for the lease, 45 s. */
static void leased(void) {
    int fd = new_file("leased", 1, 0);
    TRUE(signal(SIGIO, SIG_IGN) != SIG_ERR);
    if (fcntl(fd, F_SETLEASE, F_WRLCK) != 0) {
        fprintf(stderr, "skipped, because there are no leases here: %s\n", strerror(errno));
        return;
    }
    time_t begin = time(NULL);
    hipFileHandle_t own = register_file(fd);
    TRUE(time(NULL) - begin < 20);
    EXPECT(hipFileRead(own, memory, 256 * KIB, 0, 0), 256 * KIB);
}

int main(int count_of_arguments, char **arguments) {
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {
        {"cancel", cancel},   {"child", child},         {"unread", unread}, {"closed", closed},
        {"limited", limited}, {"forbidden", forbidden}, {"given", given},   {"leased", leased},
    };
    EXPECT(count_of_arguments, 3);
    folder = arguments[1];
    const char *name = arguments[2];
    file = new_file("file", 1, 0);
    memory = (char *)device_memory(256 * KIB);
    /* The first registration is part of what these are about. */
    if (strcmp(name, "limited") != 0 && strcmp(name, "closed") != 0) handle = register_file(file);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(all[i].name, name) == 0) {
            all[i].run();
            return 0;
        }
    }
    fprintf(stderr, "there is no `%s`\n", name);
    return 2;
}
