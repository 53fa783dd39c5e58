/* SPDX-License-Identifier: Apache-2.0 */
#include "common/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_SIZE ((size_t)32 << 10)

/* Directories kept open at once while a tree is removed; deeper ones are reopened. */
#define WALK_FD_MAX 16

#define NAME_TRIES 16 /* names of a temporary file that are taken */

#define CHECK_PATH "; check the path"
#define REMOVE "; remove what is there, or choose another path"
#define ALLOW "; allow this user to do it, or choose another path"
#define MAKE_ROOM "; make room there"
#define OPEN_FILES "; raise the limit of open files (ulimit -n)"
#define LIMITS "; end other programs, or raise the limits of this user (ulimit -a)"
#define OTHER "; the system's log (journalctl -k) may say more"

struct meaning {
    int system_errno;
    wpk_err err;
    const char *advice; /* behind a message that says what failed */
};

static struct meaning find_meaning(int system_errno)
{
    static const struct meaning all[] = {
        {0, WPK_OK, OTHER},
        {ENOENT, WPK_ENOENT, CHECK_PATH},
        {ENOTDIR, WPK_ENOENT, CHECK_PATH},
        {EEXIST, WPK_EEXIST, REMOVE},
        {ENOTEMPTY, WPK_EEXIST, REMOVE},
        {EACCES, WPK_EACCES, ALLOW},
        {EPERM, WPK_EACCES, ALLOW},
        {EROFS, WPK_EACCES, "; choose a path that can be written"},
        {ENOSPC, WPK_ENOSPC, MAKE_ROOM},
        {EDQUOT, WPK_ENOSPC, MAKE_ROOM},
        {EFBIG, WPK_ENOSPC, MAKE_ROOM},
        {ENOMEM, WPK_ENOMEM, LIMITS},
        {EIO, WPK_EIO, OTHER},
        {EBUSY, WPK_EBUSY, OTHER},
        {EAGAIN, WPK_EBUSY, LIMITS},
        {ETIMEDOUT, WPK_ETIMEDOUT, OTHER},
        {EPIPE, WPK_ECLOSED, OTHER},
        {ECONNRESET, WPK_ECLOSED, OTHER},
        {EINVAL, WPK_EINVAL, OTHER},
        {ENAMETOOLONG, WPK_EINVAL, CHECK_PATH},
        {ELOOP, WPK_EINVAL, CHECK_PATH},
        {EISDIR, WPK_EINVAL, "; name a file"},
        {EMFILE, WPK_ESYSTEM, OPEN_FILES},
        {ENFILE, WPK_ESYSTEM, OPEN_FILES},
        {ENOEXEC, WPK_ESYSTEM, "; install the program again"},
        {EADDRINUSE, WPK_ESYSTEM, "; end what listens there, or choose another address"},
        {EADDRNOTAVAIL, WPK_ESYSTEM, "; choose an address of this machine"},
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (all[i].system_errno == system_errno) {
            return all[i];
        }
    }
    return (struct meaning){system_errno, WPK_ESYSTEM, OTHER};
}

wpk_err wpk_fs_err(int system_errno)
{
    return find_meaning(system_errno).err;
}

const char *wpk_fs_advice(int system_errno)
{
    return find_meaning(system_errno).advice;
}

wpk_err wpk_fs_fail(const char *path, struct wpk_diag *diag)
{
    int saved = errno;

    wpk_diag_set(diag, "%s: %s%s", path, strerror(saved), wpk_fs_advice(saved));
    return wpk_fs_err(saved);
}

/* The same of what could not be done with it. */
static wpk_err fail_errno(const char *what, const char *path, struct wpk_diag *diag)
{
    int saved = errno;

    wpk_diag_set(diag, "cannot %s '%s': %s%s", what, path, strerror(saved), wpk_fs_advice(saved));
    return wpk_fs_err(saved);
}

static wpk_err read_fd(int fd, const char *path, size_t size_max, struct wpk_buf *out,
                       struct wpk_diag *diag)
{
    char chunk[READ_SIZE];
    size_t total = 0;

    for (;;) {
        /* One byte past the limit tells "as long as allowed" from "longer". */
        size_t wanted = size_max - total < READ_SIZE ? size_max - total + 1 : READ_SIZE;
        ssize_t got = read(fd, chunk, wanted);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return fail_errno("read", path, diag);
        }
        if (got == 0) {
            return wpk_buf_status(out);
        }
        if ((size_t)got > size_max - total) {
            return wpk_fail(diag, WPK_ERANGE, "'%s' is longer than %zu bytes; name a smaller file",
                            path, size_max);
        }
        wpk_buf_append(out, chunk, (size_t)got);
        total += (size_t)got;
    }
}

wpk_err wpk_fs_read(const char *path, size_t size_max, struct wpk_buf *out, struct wpk_diag *diag)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return fail_errno("open", path, diag);
    }
    wpk_err err = read_fd(fd, path, size_max, out, diag);
    if (out->err != WPK_OK) {
        wpk_diag_set(diag, "cannot read '%s': %s", path, wpk_err_text(out->err));
    }
    if (!is_stdin) {
        close(fd);
    }
    return err;
}

bool wpk_fs_write_all(int fd, const char *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t written = write(fd, data + done, size - done);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return false;
        }
        done += (size_t)written;
    }
    return true;
}

/* Length of the part before the last '/', with "/" for the root and 0 for "here". */
static size_t parent_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (slash == NULL) {
        return 0;
    }
    return slash == path ? 1 : (size_t)(slash - path);
}

/* Make a rename durable: the entry is the directory's content. */
static bool sync_parent(const char *path)
{
    char parent[PATH_MAX];
    size_t length = parent_length(path);

    if (length >= sizeof(parent)) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (length == 0) {
        memcpy(parent, ".", 2);
    } else {
        memcpy(parent, path, length);
        parent[length] = '\0';
    }
    int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool synced = fsync(fd) == 0;
    int saved = errno;
    close(fd);
    errno = saved;
    return synced;
}

/* A new file beside `path`. Unlike mkostemp's its mode is less the umask, as of any other file;
 * fchmod would give what the user withholds, and only one thread may ask for the umask. */
static int open_beside(const char *path, unsigned mode, char temporary[PATH_MAX])
{
    for (int attempt = 0; attempt < NAME_TRIES; attempt++) {
        uint64_t number = 0;
        if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number)) {
            return -1;
        }
        int length = snprintf(temporary, PATH_MAX, "%s.tmp.%016" PRIx64, path, number);
        if (length < 0 || length >= PATH_MAX) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, (mode_t)mode);
        if (fd >= 0 || errno != EEXIST) {
            return fd;
        }
    }
    return -1;
}

bool wpk_fs_is_stream(const char *path)
{
    static const char *const open_files[] = {"/dev/stdout", "/dev/stderr", "/dev/fd/",
                                             "/proc/self/fd/"};
    struct stat info;

    for (size_t i = 0; i < sizeof(open_files) / sizeof(open_files[0]); i++) {
        if (strncmp(path, open_files[i], strlen(open_files[i])) == 0) {
            return true;
        }
    }
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

/* A device, a pipe or an open file, as it is: there is nothing to sync or to replace. */
static wpk_err write_stream(const char *path, const void *data, size_t size, struct wpk_diag *diag)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        return fail_errno("write", path, diag);
    }
    wpk_err err = wpk_fs_write_all(fd, data, size) ? WPK_OK : fail_errno("write", path, diag);
    if (close(fd) != 0 && err == WPK_OK) {
        err = fail_errno("write", path, diag);
    }
    return err;
}

/* Write a temporary file and give it the name `path`, which is no link. */
static wpk_err replace(const char *path, const void *data, size_t size, unsigned mode,
                       struct wpk_diag *diag)
{
    char temporary[PATH_MAX];
    wpk_err err = WPK_OK;

    int fd = open_beside(path, mode, temporary);
    if (fd < 0) {
        return fail_errno("write", path, diag);
    }
    if (!wpk_fs_write_all(fd, data, size) || fsync(fd) != 0) {
        err = fail_errno("write", path, diag);
        close(fd);
        goto done;
    }
    if (close(fd) != 0 || rename(temporary, path) != 0 || !sync_parent(path)) {
        err = fail_errno("write", path, diag);
    }
done:
    if (err != WPK_OK) {
        unlink(temporary); /* gone already if it was the last step that failed */
    }
    return err;
}

wpk_err wpk_fs_write(const char *path, const void *data, size_t size, unsigned mode,
                     struct wpk_diag *diag)
{
    struct stat info;

    WPK_ASSERT(data != NULL || size == 0);
    if (wpk_fs_is_stream(path)) {
        return write_stream(path, data, size, diag);
    }
    if (lstat(path, &info) != 0 || !S_ISLNK(info.st_mode)) {
        return replace(path, data, size, mode, diag);
    }
    char *target = realpath(path, NULL);
    if (target == NULL) {
        return fail_errno("follow the link", path, diag);
    }
    wpk_err err = replace(target, data, size, mode, diag);
    free(target);
    return err;
}

wpk_err wpk_fs_sync_name(const char *path, struct wpk_diag *diag)
{
    return sync_parent(path) ? WPK_OK : fail_errno("write", path, diag);
}

wpk_err wpk_fs_rename(const char *from, const char *to, struct wpk_diag *diag)
{
    return rename(from, to) == 0 && sync_parent(to) ? WPK_OK : fail_errno("write", to, diag);
}

wpk_err wpk_fs_make_temporary(const char *tmp_dir, const char *stem, char *out, size_t size,
                              struct wpk_diag *diag)
{
    int length = snprintf(out, size, "%s/%s-XXXXXX", tmp_dir, stem);
    wpk_err err = length < 0 || (size_t)length >= size ? WPK_ERANGE
                  : mkdtemp(out) != NULL               ? WPK_OK
                  : errno == ENOENT                    ? WPK_EINVAL
                                                       : wpk_fs_err(errno);
    if (err != WPK_OK) {
        out[0] = '\0';
        wpk_diag_set(diag,
                     "cannot create a directory in %s: %s; set TMPDIR to one that can be written",
                     tmp_dir, err == WPK_ERANGE ? wpk_err_text(err) : strerror(errno));
    }
    return err;
}

wpk_err wpk_fs_make_dirs(const char *path, struct wpk_diag *diag)
{
    char partial[PATH_MAX];
    size_t length = strlen(path);
    struct stat info;

    if (length == 0 || length >= sizeof(partial)) {
        errno = length == 0 ? ENOENT : ENAMETOOLONG;
        return fail_errno("create directory", path, diag);
    }
    memcpy(partial, path, length + 1);
    for (size_t i = 1; i <= length; i++) {
        if (partial[i] != '/' && partial[i] != '\0') {
            continue;
        }
        char kept = partial[i];
        partial[i] = '\0';
        if (mkdir(partial, 0700) == 0) {
            (void)sync_parent(partial); /* a file in it is synced after this, and says what fails */
        } else if (errno != EEXIST) {
            /* Read-only places above are fine as long as the directory is there. */
            int saved = errno;
            if (stat(partial, &info) != 0) {
                errno = saved;
                return fail_errno("create directory", path, diag);
            }
        }
        partial[i] = kept;
    }
    if (stat(path, &info) != 0) {
        return fail_errno("create directory", path, diag);
    }
    if (!S_ISDIR(info.st_mode)) {
        errno = ENOTDIR;
        return wpk_fail(diag, WPK_EEXIST,
                        "cannot create directory '%s': a file is there; choose another path", path);
    }
    return WPK_OK;
}

static int remove_entry(const char *path, const struct stat *info WPK_UNUSED, int kind WPK_UNUSED,
                        struct FTW *walk WPK_UNUSED)
{
    return remove(path);
}

wpk_err wpk_fs_remove_tree(const char *path, struct wpk_diag *diag)
{
    struct stat info;

    WPK_ASSERT(path[0] != '\0');
    if (lstat(path, &info) != 0) {
        return errno == ENOENT ? WPK_OK : fail_errno("remove", path, diag);
    }
    if (nftw(path, remove_entry, WALK_FD_MAX, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) != 0) {
        return fail_errno("remove", path, diag);
    }
    return WPK_OK;
}

wpk_err wpk_fs_check_socket(const char *path, struct wpk_diag *diag)
{
    struct stat info;

    /* bind() reports all other errors of the path. */
    if (lstat(path, &info) != 0 || S_ISSOCK(info.st_mode)) {
        return WPK_OK;
    }
    return wpk_fail(diag, WPK_EINVAL,
                    "%s is there, and is no socket; remove it, or choose another path", path);
}

wpk_err wpk_fs_data_dir(const char *given, const char *xdg_data_home, const char *home,
                        struct wpk_buf *out, struct wpk_diag *diag)
{
    if (given != NULL && given[0] == '\0') {
        return wpk_fail(diag, WPK_EINVAL,
                        "--data: '' is no directory; name one, or leave the option out");
    }
    if (given != NULL) {
        wpk_buf_append_text(out, given);
    } else if (xdg_data_home != NULL && xdg_data_home[0] == '/') {
        wpk_buf_printf(out, "%s/woodpecker", xdg_data_home);
    } else if (home != NULL && home[0] != '\0') {
        wpk_buf_printf(out, "%s/.local/share/woodpecker", home);
    } else {
        return wpk_fail(diag, WPK_EINVAL, "no data directory: give --data, or set HOME");
    }
    return wpk_buf_status(out);
}

wpk_err wpk_fs_program_dir(struct wpk_buf *out, struct wpk_diag *diag)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

    if (length < 0) {
        return fail_errno("find the running program through", "/proc/self/exe", diag);
    }
    path[length] = '\0';
    wpk_buf_append(out, path, parent_length(path));
    return wpk_buf_status(out);
}
