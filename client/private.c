/* SPDX-License-Identifier: Apache-2.0 */
#include "client/private.h"

#include "client/http.h"
#include "common/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PATH_SIZE 4096
#define URL_SIZE (sizeof(((struct sockaddr_un *)0)->sun_path) + 16)
#define READY_MS 20000 /* wpkd may have a long history to look through */
#define DRAIN_MS 15000 /* a worker ends the candidate it is timing */
#define WORKER_MS 5000
#define POLL_MS 20

enum process { PROCESS_WPKD, PROCESS_WORKER, PROCESS_COUNT };

static const char *const process_names[PROCESS_COUNT] = {"wpkd", "wpk-worker"};

struct wpk_private {
    struct wpk_private_options options;
    char endpoint_path[PATH_SIZE];
    char log_path[PROCESS_COUNT][PATH_SIZE];
    char socket_dir[URL_SIZE]; /* "" while attached */
    char view[PATH_SIZE];      /* copy of a history that cannot be written; "": there is none */
    char url[URL_SIZE];
    int lock_fd; /* held by the owner; -1 while attached */
    struct wpk_child child[PROCESS_COUNT];
    int restart_count[PROCESS_COUNT];
};

/* The file that the owner writes for other processes: two lines, URL and process id of wpkd. */
struct endpoint {
    char url[URL_SIZE];
    pid_t pid;
};

static bool answers(const char *url)
{
    struct wpk_http *http;
    struct wpk_http_reply reply = {0};

    if (wpk_http_open(&(struct wpk_http_client_options){.url = url}, &http, NULL) != WPK_OK) {
        return false;
    }
    wpk_err err =
        wpk_http_send(http, &(struct wpk_http_client_request){.path = "/healthz"}, &reply, NULL);
    bool healthy = err == WPK_OK && reply.status == 200;
    wpk_http_reply_fini(&reply);
    wpk_http_close(http);
    return healthy;
}

static const char unix_prefix[] = "unix:";

static bool read_endpoint(const struct wpk_private *self, struct endpoint *out)
{
    struct wpk_buf text = {.size_max = PATH_SIZE};
    struct endpoint endpoint = {0};
    long pid = 0;

    bool found = wpk_fs_read(self->endpoint_path, PATH_SIZE - 1, &text, NULL) == WPK_OK;
    const char *newline = found ? strchr(wpk_buf_text(&text), '\n') : NULL;
    found = newline != NULL && (size_t)(newline - text.data) < sizeof(endpoint.url) &&
            wpk_begins(text.data, unix_prefix);
    if (found) {
        memcpy(endpoint.url, text.data, (size_t)(newline - text.data));
        pid = strtol(newline + 1, NULL, 10);
        found = pid > 1 && pid < INT32_MAX;
    }
    wpk_buf_fini(&text);
    if (found) {
        endpoint.pid = (pid_t)pid;
        *out = endpoint;
    }
    return found;
}

static wpk_err write_endpoint(const struct wpk_private *self, struct wpk_diag *diag)
{
    char text[URL_SIZE + 32];
    int length =
        snprintf(text, sizeof(text), "%s\n%ld\n", self->url, (long)self->child[PROCESS_WPKD].pid);

    return wpk_fs_write(self->endpoint_path, text, (size_t)length, 0600, diag);
}

/* An owner that was killed could not clean up. Remove its directory only if the name is one that
 * make_socket_dir makes. */
static void remove_socket_dir_of(const char *url)
{
    char dir[URL_SIZE];
    const char *tail;

    snprintf(dir, sizeof(dir), "%s", url + strlen(unix_prefix));
    char *slash = strrchr(dir, '/');
    if (slash == NULL || strcmp(slash, "/http.sock") != 0) {
        return;
    }
    *slash = '\0';
    tail = strrchr(dir, '/');
    if (tail != NULL && wpk_begins(tail, "/wpk-")) {
        (void)!wpk_fs_remove_tree(dir, NULL); /* what is left in /tmp harms nobody */
    }
}

/* The wpkd of an owner that was killed is told to end by the kernel, and takes a moment. */
static void wait_for_predecessor(const struct wpk_private *self)
{
    struct endpoint old;

    if (!read_endpoint(self, &old)) {
        return;
    }
    for (int waited = 0; waited < DRAIN_MS && kill(old.pid, 0) == 0 && answers(old.url);
         waited += POLL_MS) {
        wpk_child_pause(POLL_MS);
    }
    remove_socket_dir_of(old.url);
}

static wpk_err make_socket_dir(struct wpk_private *self, struct wpk_diag *diag)
{
    const char *base = self->options.runtime_dir;
    char path[PATH_SIZE];

    /* A socket's path is short; where the runtime directory's is not, /tmp serves. */
    for (int i = 0; i < 2; i++, base = NULL) {
        snprintf(path, sizeof(path), "%s/wpk-XXXXXX", base != NULL ? base : "/tmp");
        if (strlen(path) + sizeof("/workers.sock") <= sizeof(((struct sockaddr_un *)0)->sun_path) &&
            mkdtemp(path) != NULL) {
            snprintf(self->socket_dir, sizeof(self->socket_dir), "%s", path);
            return WPK_OK;
        }
    }
    wpk_diag_set(diag,
                 "cannot create a directory in /tmp: %s; make room there, or set XDG_RUNTIME_DIR",
                 strerror(errno));
    return wpk_fs_err(errno);
}

static wpk_err start_process(struct wpk_private *self, enum process which, struct wpk_diag *diag)
{
    char http[URL_SIZE + 32];
    char workers[URL_SIZE + 32];
    const char *const wpkd[] = {"wpkd",     "--data", self->options.data_dir, "--http", http,
                                "--listen", workers,  "--exit-on-failure",    NULL};
    /* The worker's files lie beside the sockets: what a killed one leaves goes with them. */
    const char *const cpu[] = {"wpk-worker",     "--cpu", "--coordinator", workers, "--data",
                               self->socket_dir, NULL};
    const char *const gpu[] = {"wpk-worker", "--gpu",  self->options.gpu, "--coordinator",
                               workers,      "--data", self->socket_dir,  NULL};
    const char *const *worker = self->options.gpu != NULL ? gpu : cpu;

    snprintf(http, sizeof(http), "unix:%s/http.sock", self->socket_dir);
    snprintf(workers, sizeof(workers), "ipc://%s/workers.sock", self->socket_dir);
    if (which == PROCESS_WPKD) {
        /* One that was killed has left its socket. */
        unlink(http + strlen(unix_prefix));
    }
    wpk_err err = wpk_child_start(&self->child[which], which == PROCESS_WPKD ? wpkd : worker,
                                  self->log_path[which], diag);
    return err == WPK_ENOENT ? WPK_ECLOSED : err;
}

static wpk_err fail_last_words(const struct wpk_private *self, enum process which,
                               struct wpk_diag *diag)
{
    char words[WPK_DIAG_TEXT_MAX / 2];

    wpk_child_last_words(self->log_path[which], words, sizeof(words));
    return wpk_fail(diag, WPK_ECLOSED, "%s ended: %s (all of it in %s)", process_names[which],
                    words[0] != '\0' ? words : "without a word", self->log_path[which]);
}

static wpk_err revive(struct wpk_private *self, enum process which, struct wpk_diag *diag);

/* One that is killed before it has answered is started again, as one that answered is. */
static wpk_err start_wpkd(struct wpk_private *self, struct wpk_diag *diag)
{
    wpk_err err = start_process(self, PROCESS_WPKD, diag);

    if (err != WPK_OK) {
        return err;
    }
    for (int waited = 0; waited < READY_MS; waited += POLL_MS) {
        if (answers(self->url)) {
            return write_endpoint(self, diag);
        }
        if (!wpk_child_runs(&self->child[PROCESS_WPKD])) {
            return revive(self, PROCESS_WPKD, diag);
        }
        wpk_child_pause(POLL_MS);
    }
    return wpk_fail(diag, WPK_ETIMEDOUT, "wpkd does not answer; see %s",
                    self->log_path[PROCESS_WPKD]);
}

/* We hold the lock: start everything. */
static wpk_err start_all(struct wpk_private *self, struct wpk_diag *diag)
{
    wait_for_predecessor(self);
    wpk_err err = make_socket_dir(self, diag);
    if (err != WPK_OK) {
        return err;
    }
    snprintf(self->url, sizeof(self->url), "unix:%.*s/http.sock",
             (int)(sizeof(self->url) - sizeof("unix:/http.sock")), self->socket_dir);
    err = start_wpkd(self, diag);
    if (err == WPK_OK && self->options.with_worker) {
        err = start_process(self, PROCESS_WORKER, diag);
    }
    return err;
}

/* True when we have become the owner. */
static wpk_err try_lock(struct wpk_private *self, bool *locked, struct wpk_diag *diag)
{
    char path[PATH_SIZE];

    *locked = false;
    snprintf(path, sizeof(path), "%.*s/private.lock", PATH_SIZE - 32, self->options.data_dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        wpk_diag_set(diag, "cannot write '%s': %s%s", path, strerror(errno), wpk_fs_advice(errno));
        return wpk_fs_err(errno);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        self->lock_fd = fd;
        *locked = true;
        return WPK_OK;
    }
    int failed = errno;
    close(fd);
    if (failed != EWOULDBLOCK) {
        wpk_diag_set(diag, "cannot lock '%s': %s%s", path, strerror(failed), wpk_fs_advice(failed));
        return wpk_fs_err(failed);
    }
    return WPK_OK;
}

/* A wpkd that serves this data directory already: an owner's, or one that was started by hand and
 * listens where wpkd does by default. */
static bool find_running(struct wpk_private *self)
{
    struct endpoint endpoint = {0};

    if (!read_endpoint(self, &endpoint) || !answers(endpoint.url)) {
        int length = snprintf(endpoint.url, sizeof(endpoint.url), "%s%s/wpkd.sock", unix_prefix,
                              self->options.data_dir);
        if (length >= (int)sizeof(endpoint.url) || !answers(endpoint.url)) {
            return false;
        }
    }
    memcpy(self->url, endpoint.url, sizeof(self->url));
    return true;
}

/* Make the directories that wpkd needs; a command that only reads makes none if there is no
 * history. */
static wpk_err prepare_dirs(const struct wpk_private *self, struct wpk_diag *diag)
{
    char path[PATH_SIZE];

    snprintf(path, sizeof(path), "%.*s/history.db", PATH_SIZE - 32, self->options.data_dir);
    if (self->options.reads_only && access(path, F_OK) != 0) {
        return wpk_fail(diag, WPK_ENOENT, "there is no history in %s; wpkctl tune makes one",
                        self->options.data_dir);
    }
    snprintf(path, sizeof(path), "%.*s/log", PATH_SIZE - 32, self->options.data_dir);
    wpk_err err = wpk_fs_make_dirs(path, diag);
    /* A name that cannot be a directory is the caller's mistake, not a thing to look for. */
    return err == WPK_ENOENT || err == WPK_EEXIST ? WPK_EINVAL : err;
}

/* wpkd's own warning goes to its log. */
static void warn_lost_key(const struct wpk_private *self)
{
    char history[PATH_SIZE];
    char key[PATH_SIZE];

    snprintf(history, sizeof(history), "%.*s/history.db", PATH_SIZE - 32, self->options.data_dir);
    snprintf(key, sizeof(key), "%.*s/signing.key", PATH_SIZE - 32, self->options.data_dir);
    if (access(history, F_OK) == 0 && access(key, F_OK) != 0 && errno == ENOENT) {
        fprintf(stderr,
                "wpkctl: %s is lost: kernels that it signed are not served any more "
                "(signing_key_lost in %s/log/wpkd.log has their ids); tune their operators again, "
                "or restore a backup with wpkctl db restore\n",
                key, self->options.data_dir);
    }
}

/* Become the owner, or find a wpkd that runs: whichever comes first. */
static wpk_err join(struct wpk_private *self, struct wpk_diag *diag)
{
    bool locked;

    if (find_running(self)) {
        return WPK_OK;
    }
    if (self->options.attach_only) {
        return wpk_fail(diag, WPK_ECLOSED,
                        "no wpkd runs over %s: start one and name it with --server or WPK_URL, or "
                        "use wpkctl tune, which needs none",
                        self->options.data_dir);
    }
    wpk_err err = prepare_dirs(self, diag);
    for (int waited = 0; err == WPK_OK && waited < READY_MS; waited += POLL_MS) {
        err = try_lock(self, &locked, diag);
        if (err != WPK_OK || locked) {
            if (err == WPK_OK) {
                warn_lost_key(self);
            }
            return err != WPK_OK ? err : start_all(self, diag);
        }
        if (find_running(self)) {
            return WPK_OK;
        }
        wpk_child_pause(POLL_MS);
    }
    if (err != WPK_OK) {
        return err;
    }
    return wpk_fail(
        diag, WPK_EBUSY,
        "another wpkctl works on %s, and its wpkd does not answer; wait for it, or end it",
        self->options.data_dir);
}

/* ---- a history where nothing can be written: a read-only disk, or a full one */

/* True if a few pages can be written beside the history. */
static bool can_write(const char *dir)
{
    static const char pages[1 << 16];
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%.*s/.probe-XXXXXX", PATH_SIZE - 32, dir);
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool written = write(fd, pages, sizeof(pages)) == (ssize_t)sizeof(pages) && fsync(fd) == 0;
    close(fd);
    unlink(path);
    return written;
}

static wpk_err copy_file(const char *from, const char *to, struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    wpk_err err = wpk_fs_read(from, SIZE_MAX / 2, &text, diag);
    err = err == WPK_OK ? wpk_fs_write(to, text.data, text.size, 0600, diag) : err;
    wpk_buf_fini(&text);
    return err;
}

/* Copy the files of the data directory into a directory of our own, and let its directories, which
 * have the artifacts, point to the old ones. */
static wpk_err fill_view(struct wpk_private *self, struct wpk_diag *diag)
{
    DIR *dir = opendir(self->options.data_dir);
    wpk_err err = WPK_OK;
    if (dir == NULL) {
        wpk_diag_set(diag, "cannot read '%s': %s", self->options.data_dir, strerror(errno));
        return wpk_fs_err(errno);
    }
    for (struct dirent *entry; err == WPK_OK && (entry = readdir(dir)) != NULL;) {
        char from[2 * PATH_SIZE], to[2 * PATH_SIZE];
        struct stat status;
        snprintf(from, sizeof(from), "%s/%s", self->options.data_dir, entry->d_name);
        snprintf(to, sizeof(to), "%s/%s", self->view, entry->d_name);
        bool ours = entry->d_name[0] == '.' || strcmp(entry->d_name, "log") == 0 ||
                    wpk_begins(entry->d_name, "private.") ||
                    strcmp(entry->d_name, "history.db-shm") == 0;
        if (ours || stat(from, &status) != 0) {
            continue;
        }
        if (S_ISDIR(status.st_mode) && symlink(from, to) != 0) {
            wpk_diag_set(diag, "cannot write '%s': %s", to, strerror(errno));
            err = wpk_fs_err(errno);
        } else if (S_ISREG(status.st_mode)) {
            err = copy_file(from, to, diag);
        }
    }
    closedir(dir);
    return err;
}

/* Copy the data directory for a command that only reads, if the directory cannot be written. */
static wpk_err make_view(struct wpk_private *self, struct wpk_diag *diag)
{
    char history[PATH_SIZE];
    snprintf(history, sizeof(history), "%.*s/history.db", PATH_SIZE - 32, self->options.data_dir);
    if (!self->options.reads_only || access(history, R_OK) != 0 || find_running(self) ||
        can_write(self->options.data_dir)) {
        return WPK_OK;
    }
    const char *base = self->options.runtime_dir != NULL ? self->options.runtime_dir : "/tmp";
    snprintf(self->view, sizeof(self->view), "%.*s/wpk-view-XXXXXX", PATH_SIZE - 64, base);
    if (mkdtemp(self->view) == NULL) {
        wpk_diag_set(diag, "cannot write in '%s', nor a copy of it in '%s': %s",
                     self->options.data_dir, base, strerror(errno));
        self->view[0] = '\0';
        return wpk_fs_err(errno);
    }
    wpk_err err = fill_view(self, diag);
    self->options.data_dir = self->view;
    return err;
}

static wpk_err prepare_paths(struct wpk_private *self, struct wpk_diag *diag)
{
    const char *data_dir = self->options.data_dir;

    if (strlen(data_dir) > PATH_SIZE - 64) {
        return wpk_fail(diag, WPK_EINVAL,
                        "the data directory's name is too long; name a shorter one with --data");
    }
    snprintf(self->endpoint_path, PATH_SIZE, "%s/private.endpoint", data_dir);
    for (int i = 0; i < PROCESS_COUNT; i++) {
        snprintf(self->log_path[i], PATH_SIZE, "%s/log/%s.log", data_dir, process_names[i]);
    }
    return WPK_OK;
}

wpk_err wpk_private_open(const struct wpk_private_options *options, struct wpk_private **out,
                         struct wpk_diag *diag)
{
    WPK_ASSERT(options->data_dir != NULL);
    struct wpk_private *self = WPK_DEMAND(calloc(1, sizeof(*self)));
    self->options = *options;
    self->lock_fd = -1;
    wpk_err err = prepare_paths(self, diag);
    err = err == WPK_OK ? make_view(self, diag) : err;
    if (err == WPK_OK && self->view[0] != '\0') {
        err = prepare_paths(self, diag);
    }
    err = err == WPK_OK ? join(self, diag) : err;
    if (err != WPK_OK) {
        wpk_private_close(self);
        return err;
    }
    *out = self;
    return WPK_OK;
}

void wpk_private_close(struct wpk_private *self)
{
    if (self == NULL) {
        return;
    }
    /* The worker first: it can still hand in what it has, where there is somebody to take it. */
    wpk_child_stop(&self->child[PROCESS_WORKER],
                   wpk_child_runs(&self->child[PROCESS_WPKD]) ? WORKER_MS : 0);
    wpk_child_stop(&self->child[PROCESS_WPKD], DRAIN_MS);
    if (self->socket_dir[0] != '\0') {
        wpk_err err = wpk_fs_remove_tree(self->socket_dir, NULL);
        (void)err; /* what is left in /tmp harms nobody */
    }
    if (self->lock_fd >= 0) {
        unlink(self->endpoint_path);
        close(self->lock_fd);
    }
    if (self->view[0] != '\0') {
        wpk_err err = wpk_fs_remove_tree(self->view, NULL);
        (void)err; /* likewise */
    }
    free(self);
}

const char *wpk_private_url(const struct wpk_private *self)
{
    return self->url;
}

bool wpk_private_is_owner(const struct wpk_private *self)
{
    return self->lock_fd >= 0;
}

static void notice(const struct wpk_private *self, const char *format, const char *words)
{
    char text[WPK_DIAG_TEXT_MAX];

    if (self->options.notice != NULL) {
        snprintf(text, sizeof(text), format, words);
        self->options.notice(text, self->options.user);
    }
}

/* Killed ones have not said why. */
static void notice_restart(const struct wpk_private *self, enum process which, bool failed)
{
    char words[WPK_DIAG_TEXT_MAX / 2] = "";
    char ended[WPK_DIAG_TEXT_MAX];

    if (failed) {
        wpk_child_last_words(self->log_path[which], words, sizeof(words));
    }
    snprintf(ended, sizeof(ended), "%s ended%s%s", process_names[which],
             words[0] != '\0' ? ": " : "", words);
    notice(self, "%s; it is started again", ended);
}

static wpk_err revive(struct wpk_private *self, enum process which, struct wpk_diag *diag)
{
    /* A wpkd that ends by itself cannot keep its history, and would say so again. */
    int status = self->child[which].status;
    bool failed = status > 0 && status < 128;
    if (which == PROCESS_WPKD && failed) {
        return fail_last_words(self, which, diag);
    }
    if (self->restart_count[which] >=
        (failed ? WPK_PRIVATE_FAILURES_MAX : WPK_PRIVATE_RESTARTS_MAX)) {
        wpk_err err = fail_last_words(self, which, diag);
        (void)err; /* the words are what matters */
        return WPK_EEXHAUSTED;
    }
    self->restart_count[which]++;
    notice_restart(self, which, failed);
    return which == PROCESS_WPKD ? start_wpkd(self, diag) : start_process(self, which, diag);
}

wpk_err wpk_private_tend(struct wpk_private *self, bool *changed, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;

    *changed = false;
    if (!wpk_private_is_owner(self)) {
        if (answers(self->url)) {
            return WPK_OK;
        }
        err = join(self, diag);
        *changed = err == WPK_OK;
        if (err == WPK_OK && wpk_private_is_owner(self)) {
            notice(self, "%s's owner has gone; this one takes its place", process_names[0]);
        }
        return err;
    }
    if (!wpk_child_runs(&self->child[PROCESS_WPKD])) {
        err = revive(self, PROCESS_WPKD, diag);
    }
    if (err == WPK_OK && self->options.with_worker &&
        !wpk_child_runs(&self->child[PROCESS_WORKER])) {
        err = revive(self, PROCESS_WORKER, diag);
    }
    return err;
}
