/* Loaded before libc: counts the calls that change what lies below one folder,
 * writes them to a trace, and kills the building process at a chosen one.
 *
 * A place is "role call path": role is main or worker, the path is relative to
 * the folder, and long hexadecimal names (fingerprints) are replaced by '#'.
 *
 * KILLPOINT_ROOT    the folder, an absolute path without links
 * KILLPOINT_SHARED  a file of 16 zero bytes, mapped by all processes:
 *                   the main process's id, and how often the place was met
 * KILLPOINT_TRACE   a file to append to, or unset
 * KILLPOINT_PLACE   the place to kill at, or unset
 * KILLPOINT_NTH     at which occurrence of it, from 1
 * KILLPOINT_HOW     before: kill before the call; torn: half of the bytes are
 *                   written first; alone: before, and kill this process only;
 *                   a number: the call fails with this errno, and nothing is killed
 * KILLPOINT_REFUSE  set: renameat2 with flags is refused (EINVAL), as on NFS
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

struct shared { volatile int64_t main_pid; volatile int64_t met; };

static struct shared *shared;
static const char *root, *place, *how;
static size_t root_length;
static int64_t nth;
static int trace_fd = -1;

/* Read the environment again: for a process that was forked, not executed. */
__attribute__((visibility("default"))) void killpoint_arm(void)
{
    const char *path = getenv("KILLPOINT_SHARED"), *trace = getenv("KILLPOINT_TRACE");
    const char *count = getenv("KILLPOINT_NTH");
    root = NULL;
    if (path == NULL || getenv("KILLPOINT_ROOT") == NULL)
        return;
    int fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || shared == MAP_FAILED)
        abort();
    close(fd);
    trace_fd = -1;
    if (trace != NULL)
        trace_fd = syscall(SYS_openat, AT_FDCWD, trace, O_WRONLY | O_APPEND | O_CLOEXEC);
    place = getenv("KILLPOINT_PLACE");
    how = getenv("KILLPOINT_HOW");
    nth = count ? atoll(count) : 0;
    root = getenv("KILLPOINT_ROOT");
    root_length = strlen(root);
    __sync_val_compare_and_swap(&shared->main_pid, 0, (int64_t)getpid());
}

__attribute__((constructor)) static void start(void) { killpoint_arm(); }

static void *real(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL)
        abort();
    return found;
}

static void die(void)
{
    int64_t main_pid = shared->main_pid;
    if (getpid() != main_pid && strcmp(how, "alone") != 0)
        kill((pid_t)main_pid, SIGKILL);
    for (;;)
        syscall(SYS_kill, getpid(), SIGKILL);
}

/* The path relative to the root, or NULL where it is elsewhere. */
static const char *below(const char *path)
{
    if (strncmp(path, root, root_length) != 0)
        return NULL;
    if (path[root_length] == '\0')
        return ".";
    return path[root_length] == '/' ? path + root_length + 1 : NULL;
}

static int path_of_fd(int fd, char *path)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
    if (length <= 0)
        return 0;
    path[length] = '\0';
    return path[0] == '/';
}

static int path_at(int dir, const char *name, char *path)
{
    if (name[0] == '/') {
        snprintf(path, PATH_MAX, "%s", name);
        return 1;
    }
    if (dir == AT_FDCWD) {
        long length = syscall(SYS_getcwd, path, PATH_MAX);
        if (length <= 0)
            return 0;
    } else if (!path_of_fd(dir, path))
        return 0;
    size_t used = strlen(path);
    snprintf(path + used, PATH_MAX - used, "/%s", name);
    return 1;
}

static int hexadecimal(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

static void normalise(const char *from, char *to)
{
    while (*from) {
        size_t run = 0;
        while (hexadecimal(from[run]))
            run++;
        if (run >= 16) {
            *to++ = '#';
            from += run;
        } else {
            for (size_t copied = run ? run : 1; copied; copied--)
                *to++ = *from++;
        }
    }
    *to = '\0';
}

/* Count a call. Returns 1 where a write is to be torn, 2 where the call fails with the errno
 * that is set; does not return from a kill. */
static int met(const char *call, const char *path, const char *second)
{
    char normal[PATH_MAX + 1], here[PATH_MAX + 64], line[3 * PATH_MAX];
    int saved = errno, verdict = 0;
    const char *role = getpid() == shared->main_pid ? "main" : "worker";
    normalise(path, normal);
    snprintf(here, sizeof here, "%s %s %s", role, call, normal);
    if (trace_fd >= 0) {
        int length = snprintf(line, sizeof line, "%s\t%s\t%s\t%s\t%s\n", here, role, call, path,
                              second ? second : "");
        if (syscall(SYS_write, trace_fd, line, (size_t)length) != length)
            abort();
    }
    if (place != NULL && strcmp(here, place) == 0
        && __sync_add_and_fetch(&shared->met, 1) == nth) {
        int fault = atoi(how);
        if (fault > 0) {
            errno = fault;
            return 2;
        }
        if (strcmp(how, "torn") != 0)
            die();
        verdict = 1;
    }
    errno = saved;
    return verdict;
}

static int met_fd(const char *call, int fd)
{
    char path[PATH_MAX];
    const char *inside;
    int saved = errno, verdict = 0;
    if (root != NULL && path_of_fd(fd, path) && (inside = below(path)) != NULL)
        verdict = met(call, inside, NULL);
    if (verdict != 2)
        errno = saved;
    return verdict;
}

static int met_path(const char *call, int dir, const char *name)
{
    char path[PATH_MAX];
    const char *inside;
    int saved = errno, verdict = 0;
    if (root != NULL && path_at(dir, name, path) && (inside = below(path)) != NULL)
        verdict = met(call, inside, NULL);
    if (verdict != 2)
        errno = saved;
    return verdict == 2;
}

/* Named by the target: where the new name appears is what matters. */
static int met_two(const char *call, int from_dir, const char *from, int to_dir, const char *to)
{
    char source[PATH_MAX], target[PATH_MAX];
    const char *inside_source, *inside_target;
    int saved = errno, verdict = 0;
    if (root != NULL && path_at(from_dir, from, source) && path_at(to_dir, to, target)) {
        inside_source = below(source);
        inside_target = below(target);
        if (inside_target != NULL)
            verdict = met(call, inside_target, inside_source);
        else if (inside_source != NULL)
            verdict = met(call, inside_source, NULL);
    }
    if (verdict != 2)
        errno = saved;
    return verdict == 2;
}

ssize_t write(int fd, const void *data, size_t size)
{
    static ssize_t (*next)(int, const void *, size_t);
    if (!next) next = real("write");
    int verdict = met_fd("write", fd);
    if (verdict == 2) return -1;
    if (verdict) { next(fd, data, size / 2); die(); }
    return next(fd, data, size);
}

#define POSITIONED(NAME)                                                        \
    ssize_t NAME(int fd, const void *data, size_t size, off_t offset)           \
    {                                                                           \
        static ssize_t (*next)(int, const void *, size_t, off_t);               \
        if (!next) next = real(#NAME);                                          \
        int verdict = met_fd("write", fd);                                      \
        if (verdict == 2) return -1;                                            \
        if (verdict) { next(fd, data, size / 2, offset); die(); }               \
        return next(fd, data, size, offset);                                    \
    }
POSITIONED(pwrite)
POSITIONED(pwrite64)

static void tear_vector(int fd, const struct iovec *parts)
{
    syscall(SYS_write, fd, parts[0].iov_base, parts[0].iov_len / 2);
    die();
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    static ssize_t (*next)(int, const struct iovec *, int);
    if (!next) next = real("writev");
    int verdict = met_fd("write", fd);
    if (verdict == 2) return -1;
    if (verdict) tear_vector(fd, parts);
    return next(fd, parts, count);
}

#define VECTOR(NAME)                                                            \
    ssize_t NAME(int fd, const struct iovec *parts, int count, off_t offset)    \
    {                                                                           \
        static ssize_t (*next)(int, const struct iovec *, int, off_t);          \
        if (!next) next = real(#NAME);                                          \
        int verdict = met_fd("write", fd);                                      \
        if (verdict == 2) return -1;                                            \
        if (verdict) tear_vector(fd, parts);                                    \
        return next(fd, parts, count, offset);                                  \
    }
VECTOR(pwritev)
VECTOR(pwritev64)

#define PER_FD(NAME, CALL)                                                      \
    int NAME(int fd)                                                            \
    {                                                                           \
        static int (*next)(int);                                                \
        if (!next) next = real(#NAME);                                          \
        if (met_fd(CALL, fd) == 2) return -1;                                   \
        return next(fd);                                                        \
    }
PER_FD(fsync, "fsync")
PER_FD(fdatasync, "fsync")

#define FD_SIZE(NAME)                                                           \
    int NAME(int fd, off_t size)                                                \
    {                                                                           \
        static int (*next)(int, off_t);                                         \
        if (!next) next = real(#NAME);                                          \
        if (met_fd("truncate", fd) == 2) return -1; \
        return next(fd, size);                                                  \
    }
FD_SIZE(ftruncate)
FD_SIZE(ftruncate64)

#define PATH_SIZE(NAME)                                                         \
    int NAME(const char *path, off_t size)                                      \
    {                                                                           \
        static int (*next)(const char *, off_t);                                \
        if (!next) next = real(#NAME);                                          \
        if (met_path("truncate", AT_FDCWD, path)) return -1; \
        return next(path, size);                                                \
    }
PATH_SIZE(truncate)
PATH_SIZE(truncate64)

#define ALLOCATE(NAME)                                                          \
    int NAME(int fd, off_t offset, off_t size)                                  \
    {                                                                           \
        static int (*next)(int, off_t, off_t);                                  \
        if (!next) next = real(#NAME);                                          \
        if (met_fd("truncate", fd) == 2) return errno; \
        return next(fd, offset, size);                                          \
    }
ALLOCATE(posix_fallocate)
ALLOCATE(posix_fallocate64)

#define FALLOCATE(NAME)                                                         \
    int NAME(int fd, int mode, off_t offset, off_t size)                        \
    {                                                                           \
        static int (*next)(int, int, off_t, off_t);                             \
        if (!next) next = real(#NAME);                                          \
        if (met_fd("truncate", fd) == 2) return -1; \
        return next(fd, mode, offset, size);                                    \
    }
FALLOCATE(fallocate)
FALLOCATE(fallocate64)

int rename(const char *from, const char *to)
{
    static int (*next)(const char *, const char *);
    if (!next) next = real("rename");
    if (met_two("rename", AT_FDCWD, from, AT_FDCWD, to)) return -1;
    return next(from, to);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    static int (*next)(int, const char *, int, const char *);
    if (!next) next = real("renameat");
    if (met_two("rename", from_dir, from, to_dir, to)) return -1;
    return next(from_dir, from, to_dir, to);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    static int (*next)(int, const char *, int, const char *, unsigned);
    if (!next) next = real("renameat2");
    if (flags && root != NULL && getenv("KILLPOINT_REFUSE") != NULL) {
        errno = EINVAL;
        return -1;
    }
    if (met_two(flags & 2 ? "exchange" : "rename", from_dir, from, to_dir, to)) return -1;
    return next(from_dir, from, to_dir, to, flags);
}

int link(const char *from, const char *to)
{
    static int (*next)(const char *, const char *);
    if (!next) next = real("link");
    if (met_two("link", AT_FDCWD, from, AT_FDCWD, to)) return -1;
    return next(from, to);
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    static int (*next)(int, const char *, int, const char *, int);
    if (!next) next = real("linkat");
    if (met_two("link", from_dir, from, to_dir, to)) return -1;
    return next(from_dir, from, to_dir, to, flags);
}

int symlink(const char *target, const char *path)
{
    static int (*next)(const char *, const char *);
    if (!next) next = real("symlink");
    if (met_path("create", AT_FDCWD, path)) return -1;
    return next(target, path);
}

int symlinkat(const char *target, int dir, const char *path)
{
    static int (*next)(const char *, int, const char *);
    if (!next) next = real("symlinkat");
    if (met_path("create", dir, path)) return -1;
    return next(target, dir, path);
}

#define PER_PATH(NAME, CALL)                                                    \
    int NAME(const char *path)                                                  \
    {                                                                           \
        static int (*next)(const char *);                                       \
        if (!next) next = real(#NAME);                                          \
        if (met_path(CALL, AT_FDCWD, path)) return -1; \
        return next(path);                                                      \
    }
PER_PATH(unlink, "unlink")
PER_PATH(rmdir, "rmdir")

int unlinkat(int dir, const char *path, int flags)
{
    static int (*next)(int, const char *, int);
    if (!next) next = real("unlinkat");
    if (met_path(flags & AT_REMOVEDIR ? "rmdir" : "unlink", dir, path)) return -1;
    return next(dir, path, flags);
}

int mkdir(const char *path, mode_t mode)
{
    static int (*next)(const char *, mode_t);
    if (!next) next = real("mkdir");
    if (met_path("mkdir", AT_FDCWD, path)) return -1;
    return next(path, mode);
}

int mkdirat(int dir, const char *path, mode_t mode)
{
    static int (*next)(int, const char *, mode_t);
    if (!next) next = real("mkdirat");
    if (met_path("mkdir", dir, path)) return -1;
    return next(dir, path, mode);
}

#define OPEN(NAME)                                                              \
    int NAME(const char *path, int flags, ...)                                  \
    {                                                                           \
        static int (*next)(const char *, int, ...);                             \
        va_list rest;                                                           \
        va_start(rest, flags);                                                  \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                                           \
        if (!next) next = real(#NAME);                                          \
        if (flags & (O_CREAT | O_TRUNC) && met_path("create", AT_FDCWD, path)) return -1; \
        return next(path, flags, mode);                                         \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(NAME)                                                            \
    int NAME(int dir, const char *path, int flags, ...)                         \
    {                                                                           \
        static int (*next)(int, const char *, int, ...);                        \
        va_list rest;                                                           \
        va_start(rest, flags);                                                  \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                                           \
        if (!next) next = real(#NAME);                                          \
        if (flags & (O_CREAT | O_TRUNC) && met_path("create", dir, path)) return -1; \
        return next(dir, path, flags, mode);                                    \
    }
OPENAT(openat)
OPENAT(openat64)

#define CREAT(NAME)                                                             \
    int NAME(const char *path, mode_t mode)                                     \
    {                                                                           \
        static int (*next)(const char *, mode_t);                               \
        if (!next) next = real(#NAME);                                          \
        if (met_path("create", AT_FDCWD, path)) return -1; \
        return next(path, mode);                                                \
    }
CREAT(creat)
CREAT(creat64)

#define FOPEN(NAME)                                                             \
    FILE *NAME(const char *path, const char *mode)                              \
    {                                                                           \
        static FILE *(*next)(const char *, const char *);                       \
        if (!next) next = real(#NAME);                                          \
        if (mode[0] != 'r' && met_path("create", AT_FDCWD, path)) return NULL;  \
        return next(path, mode);                                                \
    }
FOPEN(fopen)
FOPEN(fopen64)

#define SENDFILE(NAME)                                                          \
    ssize_t NAME(int to, int from, off_t *offset, size_t size)                  \
    {                                                                           \
        static ssize_t (*next)(int, int, off_t *, size_t);                      \
        if (!next) next = real(#NAME);                                          \
        int verdict = met_fd("write", to);                                      \
        if (verdict == 2) return -1;                                            \
        if (verdict) { next(to, from, offset, size / 2); die(); }               \
        return next(to, from, offset, size);                                    \
    }
SENDFILE(sendfile)
SENDFILE(sendfile64)

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t size,
                        unsigned flags)
{
    static ssize_t (*next)(int, off64_t *, int, off64_t *, size_t, unsigned);
    if (!next) next = real("copy_file_range");
    int verdict = met_fd("write", to);
    if (verdict == 2) return -1;
    if (verdict) { next(from, from_at, to, to_at, size / 2, flags); die(); }
    return next(from, from_at, to, to_at, size, flags);
}
