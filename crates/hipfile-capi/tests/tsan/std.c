/* What ThreadSanitizer cannot see of Rust's standard library, which comes compiled without it: that a lock which was waited for is
 * taken, that waiting on a condition gives the lock up, that a value is there when its initialisation ends, and the fence with
 * which the last owner of an Arc takes over. `cargo xtask tsan` has the linker lead calls here, and gives the names as macros. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define REAL(name) JOIN(__real_, name)
#define WRAP(name) JOIN(__wrap_, name)

void __tsan_acquire(void *address);
void __tsan_release(void *address);

void REAL(MUTEX_LOCK)(void *mutex);
void WRAP(MUTEX_LOCK)(void *mutex) {
    REAL(MUTEX_LOCK)(mutex);
    __tsan_acquire(mutex);
}

/* Its state is one of two words. */
static void acquire_rwlock(char *lock) {
    __tsan_acquire(lock);
    __tsan_acquire(lock + sizeof(uint32_t));
}

void REAL(RWLOCK_READ)(void *lock);
void WRAP(RWLOCK_READ)(void *lock) {
    REAL(RWLOCK_READ)(lock);
    acquire_rwlock(lock);
}

void REAL(RWLOCK_WRITE)(void *lock);
void WRAP(RWLOCK_WRITE)(void *lock) {
    REAL(RWLOCK_WRITE)(lock);
    acquire_rwlock(lock);
}

void REAL(CONDVAR_WAIT)(void *condition, void *mutex);
void WRAP(CONDVAR_WAIT)(void *condition, void *mutex) {
    __tsan_release(mutex);
    REAL(CONDVAR_WAIT)(condition, mutex);
    __tsan_acquire(mutex);
}

bool REAL(CONDVAR_WAIT_TIMEOUT)(void *condition, void *mutex, uint64_t seconds, uint32_t nanoseconds);
bool WRAP(CONDVAR_WAIT_TIMEOUT)(void *condition, void *mutex, uint64_t seconds, uint32_t nanoseconds) {
    __tsan_release(mutex);
    bool in_time = REAL(CONDVAR_WAIT_TIMEOUT)(condition, mutex, seconds, nanoseconds);
    __tsan_acquire(mutex);
    return in_time;
}

/* A `&mut dyn FnMut(&OnceState)` that releases when the one it stands for is done, before others can see that. */
struct initialisation {
    void *data;
    void *const *vtable;
    void *once;
};

static void initialise(struct initialisation *it, void *state) {
    void (*call_mut)(void *, void *) = (void (*)(void *, void *))it->vtable[4];
    call_mut(it->data, state);
    __tsan_release(it->once);
}

static void *const VTABLE[5] = {NULL, (void *)sizeof(struct initialisation), (void *)sizeof(void *), NULL, (void *)initialise};

void REAL(ONCE_CALL)(void *once, bool poisoned_too, void *data, void *const *vtable);
void WRAP(ONCE_CALL)(void *once, bool poisoned_too, void *data, void *const *vtable) {
    struct initialisation it = {data, vtable, once};
    REAL(ONCE_CALL)(once, poisoned_too, &it, VTABLE);
    __tsan_acquire(once);
}

/* An Arc counts down with Release, and the last one does a fence with Acquire, which ThreadSanitizer does not know. */
enum { RELEASE = 3, ACQUIRE_RELEASE = 4 };

long __real___tsan_atomic64_fetch_sub(volatile long *place, long value, int order);
long __wrap___tsan_atomic64_fetch_sub(volatile long *place, long value, int order) {
    return __real___tsan_atomic64_fetch_sub(place, value, order == RELEASE ? ACQUIRE_RELEASE : order);
}

/* A handler of no library is more than ThreadSanitizer's own knows: a lock of its is never given back at exit. To the
 * library its unloading then looks like the only end there is. */
int WRAP(__cxa_atexit)(void (*function)(void *), void *argument, void *library) {
    (void)function;
    (void)argument;
    (void)library;
    return 0;
}
