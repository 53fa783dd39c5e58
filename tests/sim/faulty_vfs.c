/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/faulty_vfs.h"

#include "common/err.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Ours, with the system's file behind it in the same memory. */
struct file {
    sqlite3_file base;
    sqlite3_file *real;
};

static struct wpk_faults faults; /* set while nothing is written */
static _Atomic uint64_t writes;
static _Atomic uint64_t syncs;
static _Atomic uint64_t failures;
static _Atomic bool reads_fail;
static sqlite3_vfs *real_vfs;

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct file *)file)->real;
}

/* ---- what goes wrong */

static bool is_hit(uint64_t number, uint64_t fails)
{
    return fails != 0 && (number == fails || (faults.lasting && number > fails));
}

static void die_at(uint64_t wanted)
{
    if (wanted != 0 && atomic_load(&writes) + atomic_load(&syncs) == wanted) {
        _exit(WPK_FAULT_EXIT);
    }
}

static int on_write(sqlite3_file *file, const void *data, int size, sqlite3_int64 at)
{
    uint64_t number = atomic_fetch_add(&writes, 1) + 1;
    die_at(faults.dies_before);
    if (is_hit(number, faults.write_fails)) {
        atomic_fetch_add(&failures, 1);
        return SQLITE_FULL;
    }
    int code = real_of(file)->pMethods->xWrite(real_of(file), data, size, at);
    die_at(faults.dies_after);
    return code;
}

static int on_sync(sqlite3_file *file, int flags)
{
    uint64_t number = atomic_fetch_add(&syncs, 1) + 1;
    die_at(faults.dies_before);
    if (faults.sync_ms > 0) {
        struct timespec pause = {faults.sync_ms / 1000, (long)(faults.sync_ms % 1000) * 1000000};
        nanosleep(&pause, NULL);
    }
    if (is_hit(number, faults.sync_fails)) {
        atomic_fetch_add(&failures, 1);
        return SQLITE_IOERR_FSYNC;
    }
    int code = real_of(file)->pMethods->xSync(real_of(file), flags);
    die_at(faults.dies_after);
    return code;
}

/* ---- what is handed on */

static int on_close(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

static int on_read(sqlite3_file *file, void *data, int size, sqlite3_int64 at)
{
    if (atomic_load(&reads_fail)) {
        atomic_fetch_add(&failures, 1);
        return SQLITE_IOERR_READ;
    }
    return real_of(file)->pMethods->xRead(real_of(file), data, size, at);
}

static int on_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int on_file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static int on_lock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int on_unlock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int on_check_lock(sqlite3_file *file, int *held)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), held);
}

static int on_control(sqlite3_file *file, int code, void *value)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), code, value);
}

static int on_sector_size(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int on_characteristics(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int on_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **out)
{
    return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, out);
}

static int on_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    return real_of(file)->pMethods->xShmLock(real_of(file), offset, count, flags);
}

static void on_shm_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int on_shm_unmap(sqlite3_file *file, int remove)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = on_close,
    .xRead = on_read,
    .xWrite = on_write,
    .xTruncate = on_truncate,
    .xSync = on_sync,
    .xFileSize = on_file_size,
    .xLock = on_lock,
    .xUnlock = on_unlock,
    .xCheckReservedLock = on_check_lock,
    .xFileControl = on_control,
    .xSectorSize = on_sector_size,
    .xDeviceCharacteristics = on_characteristics,
    .xShmMap = on_shm_map,
    .xShmLock = on_shm_lock,
    .xShmBarrier = on_shm_barrier,
    .xShmUnmap = on_shm_unmap,
};

static int on_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                   int *out_flags)
{
    struct file *mine = (struct file *)file;
    (void)vfs;
    mine->real = (sqlite3_file *)(mine + 1);
    int code = real_vfs->xOpen(real_vfs, name, mine->real, flags, out_flags);
    /* Without methods SQLite does not close it. */
    mine->base.pMethods = mine->real->pMethods != NULL ? &methods : NULL;
    return code;
}

/* ---- setting it */

void wpk_faulty_vfs_install(void)
{
    static sqlite3_vfs vfs;
    real_vfs = sqlite3_vfs_find(NULL);
    WPK_ASSERT(real_vfs != NULL && real_vfs != &vfs);
    vfs = *real_vfs;
    vfs.pNext = NULL;
    vfs.zName = "faulty";
    vfs.szOsFile = (int)sizeof(struct file) + real_vfs->szOsFile;
    vfs.xOpen = on_open;
    int code = sqlite3_vfs_register(&vfs, 1);
    WPK_ASSERT(code == SQLITE_OK);
}

void wpk_faulty_vfs_set(const struct wpk_faults *next)
{
    faults = *next;
    atomic_store(&reads_fail, next->reads_fail);
    atomic_store(&writes, 0);
    atomic_store(&syncs, 0);
    atomic_store(&failures, 0);
}

struct wpk_fault_counts wpk_faulty_vfs_counts(void)
{
    return (struct wpk_fault_counts){.writes = atomic_load(&writes),
                                     .syncs = atomic_load(&syncs),
                                     .failures = atomic_load(&failures)};
}
