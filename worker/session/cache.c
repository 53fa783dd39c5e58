/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/session/workplace.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_SIZE 128

struct file {
    char name[NAME_SIZE];
    uint64_t bytes;
    struct timespec written;
};

struct listing {
    struct file *files; /* [count] */
    uint32_t count;
    uint32_t room;
    uint64_t bytes;
};

static bool ends_in(const char *name, const char *suffix)
{
    size_t size = strlen(name);
    size_t suffix_size = strlen(suffix);
    return size >= suffix_size && strcmp(name + size - suffix_size, suffix) == 0;
}

static bool add(struct listing *listing, const char *name, const struct stat *stat)
{
    if (listing->count == listing->room) {
        uint32_t room = listing->room > 0 ? listing->room * 2 : 64;
        struct file *files =
            room <= WPK_CACHE_FILES_MAX ? realloc(listing->files, room * sizeof *files) : NULL;
        if (files == NULL) {
            return false;
        }
        listing->files = files;
        listing->room = room;
    }
    struct file *file = &listing->files[listing->count++];
    snprintf(file->name, sizeof file->name, "%s", name);
    file->bytes = (uint64_t)stat->st_blocks * 512;
    file->written = stat->st_mtim;
    listing->bytes += file->bytes;
    return true;
}

static void list(DIR *directory, const char *suffix, struct listing *out)
{
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        struct stat stat;
        if (ends_in(entry->d_name, suffix) && strlen(entry->d_name) < NAME_SIZE &&
            fstatat(dirfd(directory), entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(stat.st_mode) && !add(out, entry->d_name, &stat)) {
            return;
        }
    }
}

static int compare(const void *a, const void *b)
{
    const struct timespec *first = &((const struct file *)a)->written;
    const struct timespec *second = &((const struct file *)b)->written;
    if (first->tv_sec != second->tv_sec) {
        return first->tv_sec < second->tv_sec ? -1 : 1;
    }
    return (first->tv_nsec > second->tv_nsec) - (first->tv_nsec < second->tv_nsec);
}

uint32_t wpk_cache_trim(const char *path, const char *suffix, const struct wpk_cache_limits *limits,
                        wpk_cache_needs needs, const void *user)
{
    struct listing listing = {0};
    uint32_t removed = 0;
    DIR *directory = opendir(path);
    if (directory == NULL) {
        return 0;
    }
    list(directory, suffix, &listing);
    uint32_t left = listing.count;
    if (left > limits->files_max || listing.bytes > limits->bytes_max) {
        qsort(listing.files, listing.count, sizeof *listing.files, compare);
    }
    for (uint32_t i = 0; i < listing.count; i++) {
        const struct file *file = &listing.files[i];
        if (left <= limits->files_max && listing.bytes <= limits->bytes_max) {
            break;
        }
        if ((needs == NULL || !needs(user, file->name)) &&
            unlinkat(dirfd(directory), file->name, 0) == 0) {
            removed++;
            left--;
            listing.bytes -= file->bytes;
        }
    }
    closedir(directory);
    free(listing.files);
    return removed;
}
