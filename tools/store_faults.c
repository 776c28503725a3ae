/* Faults of a store's machine, for a process that preloads this library with LD_PRELOAD: a loss of power, a full disk, and
 * a clock that steps.
 *
 * POWER_LOSS_LOG names a file. After each fsync and fdatasync that succeeds, "device inode size" is appended to it, by
 * which files are later cut to what was durable. The size is that before the call: what is written meanwhile need not be
 * durable. sync_file_range makes nothing durable, so it is left alone.
 *
 * STORE_FAULTS names a file of 16 bytes, two signed numbers of 64 bits that may change at any time: by how many
 * microseconds the time of day is wrong, and whether the disk is full: then writes to files fail with ENOSPC.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct faults {
    long long clock_us, disk_is_full;
};

static const struct faults NONE;

#define REAL(type, name) ((type)dlsym(RTLD_NEXT, name))

static const volatile struct faults *faults(void) {
    static const volatile struct faults *found;
    if (found)
        return found;
    const char *path = getenv("STORE_FAULTS");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *page = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(struct faults), PROT_READ, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    return found = page == MAP_FAILED ? &NONE : page;
}

static void log_durable(const struct stat *file) {
    const char *path = getenv("POWER_LOSS_LOG");
    int log = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (log < 0)
        return;
    char line[80];
    int length = snprintf(line, sizeof line, "%llu %llu %llu\n", (unsigned long long)file->st_dev,
                          (unsigned long long)file->st_ino, (unsigned long long)file->st_size);
    /* The machine that writes this log is not the one that fails, so its disk is never full. */
    if (REAL(ssize_t(*)(int, const void *, size_t), "write")(log, line, length) != length)
        abort();
    close(log);
}

static int sync_and_log(const char *name, int file) {
    struct stat before;
    int is_known = fstat(file, &before) == 0;
    int result = REAL(int (*)(int), name)(file);
    if (result == 0 && is_known)
        log_durable(&before);
    return result;
}

int fsync(int file) { return sync_and_log("fsync", file); }

int fdatasync(int file) { return sync_and_log("fdatasync", file); }

static int is_refused(int file) {
    struct stat status;
    if (file <= STDERR_FILENO || !faults()->disk_is_full || fstat(file, &status) || !S_ISREG(status.st_mode))
        return 0;
    errno = ENOSPC;
    return 1;
}

ssize_t write(int file, const void *bytes, size_t count) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real)
        real = REAL(ssize_t(*)(int, const void *, size_t), "write");
    return is_refused(file) ? -1 : real(file, bytes, count);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t place) {
    return is_refused(file) ? -1 : REAL(ssize_t(*)(int, const void *, size_t, off64_t), "pwrite64")(file, bytes, count, place);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    static ssize_t (*real)(int, const struct iovec *, int);
    if (!real)
        real = REAL(ssize_t(*)(int, const struct iovec *, int), "writev");
    return is_refused(file) ? -1 : real(file, parts, count);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = REAL(int (*)(clockid_t, struct timespec *), "clock_gettime");
    int result = real(clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        long long time_ns = now->tv_sec * 1000000000LL + now->tv_nsec + faults()->clock_us * 1000;
        now->tv_sec = time_ns / 1000000000;
        now->tv_nsec = time_ns % 1000000000;
    }
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec time;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &time))
        return -1;
    now->tv_sec = time.tv_sec;
    now->tv_usec = time.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result)
        *result = now.tv_sec;
    return now.tv_sec;
}
