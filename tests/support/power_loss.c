/* Logs how much of each file a process has made durable, for tests that cut files back to that as a loss of power would.
 *
 * To preload with LD_PRELOAD. After each fsync and fdatasync that succeeds, appends "device inode size" to the file that
 * POWER_LOSS_LOG names. The size is that before the call: what is written meanwhile need not be durable. sync_file_range
 * makes nothing durable, so it is left alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void log_durable(const struct stat *file) {
    const char *path = getenv("POWER_LOSS_LOG");
    int log = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (log < 0)
        return;
    dprintf(log, "%llu %llu %llu\n", (unsigned long long)file->st_dev, (unsigned long long)file->st_ino,
            (unsigned long long)file->st_size);
    close(log);
}

static int sync_and_log(const char *name, int file) {
    int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    struct stat before;
    int is_known = fstat(file, &before) == 0;
    int result = sync(file);
    if (result == 0 && is_known)
        log_durable(&before);
    return result;
}

int fsync(int file) { return sync_and_log("fsync", file); }

int fdatasync(int file) { return sync_and_log("fdatasync", file); }
