/* A layer between Python and the system that fails the n-th operation on files below a folder. Loaded by LD_PRELOAD,
   armed by the test's child process; until then it lets everything pass. See faulty.py. */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { COUNT, FAIL, SHORT, KILL, TORN };

static char root[PATH_MAX];
static long at, seen;
static int act, error, lasting;
char faults_log[1 << 16];

void faults_arm(const char *folder, long number, int what, int code, int forever) {
    snprintf(root, sizeof root, "%s", folder);
    at = number, act = what, error = code, lasting = forever, seen = 0;
    memset(faults_log, 0, sizeof faults_log);
}

static int hit(const char *path, char name) {
    char whole[2 * PATH_MAX];
    if (!root[0] || !path) return 0;
    if (path[0] != '/') {
        if (!getcwd(whole, PATH_MAX)) return 0;
        strncat(whole, "/", 2), strncat(whole, path, PATH_MAX - 1), path = whole;
    }
    if (strncmp(path, root, strlen(root))) return 0;
    if (seen < (long)sizeof faults_log - 1) faults_log[seen] = name;
    seen++;
    return at && (seen == at || (lasting && seen > at));
}

static int hit_file(int file, char name) {
    char link[64], path[PATH_MAX];
    if (!root[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return hit(path, name);
}

static void die(void) { kill(getpid(), SIGKILL); for (;;) pause(); }

#define REAL(result, name, ...) static result (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, name)
#define GO(call) do { \
        if (act == FAIL || act == SHORT) { errno = error; return -1; } \
        if (act == TORN) call; \
        if (act == KILL || act == TORN) die(); \
    } while (0)

ssize_t write(int file, const void *from, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    if (hit_file(file, 'w')) {
        if (act == SHORT && seen == at && size > 1) return real(file, from, size / 2);
        if (act == FAIL || act == SHORT) { errno = error; return -1; }
        if (act == TORN && real(file, from, size / 2) < 0) die();
        if (act == KILL || act == TORN) die();
    }
    return real(file, from, size);
}

int fsync(int file) {
    REAL(int, "fsync", int);
    if (hit_file(file, 's')) GO(real(file));
    return real(file);
}

#define RENAME(name) int name(const char *from, const char *to) { \
        REAL(int, #name, const char *, const char *); \
        if (hit(to, 'r')) GO(real(from, to)); \
        return real(from, to); }
RENAME(rename)

#define MKDIR(name) int name(const char *path, mode_t mode) { \
        REAL(int, #name, const char *, mode_t); \
        if (hit(path, 'm')) GO(real(path, mode)); \
        return real(path, mode); }
MKDIR(mkdir)

#define TRUNCATE(name, offset) int name(int file, offset size) { \
        REAL(int, #name, int, offset); \
        if (hit_file(file, 't')) GO(real(file, size)); \
        return real(file, size); }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

#define OPEN(name) int name(const char *path, int flags, ...) { \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        REAL(int, #name, const char *, int, ...); \
        if (flags & O_CREAT && hit(path, 'o')) GO(real(path, flags, mode)); \
        return real(path, flags, mode); }
OPEN(open)
OPEN(open64)
