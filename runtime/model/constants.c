/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/model/model.h"

#include "common/crypto.h"
#include "runtime/scratch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SHARED_SIZE_MIN ((size_t)16 << 10) /* below, pages at the ends are most of a tensor */

/* The memory of one set of shapes. */
struct wpk_constant_block {
    char *memory;
    size_t users; /* its own set of shapes, and each tensor in it that is in the list */
};

/* A tensor that some set of shapes reads. */
struct tensor {
    struct tensor *next;
    struct wpk_constant_block *block;
    void *data;
    size_t size;
    size_t users;
    char checksum[WPK_CHECKSUM_HEX_SIZE];
};

struct wpk_constant_use {
    struct wpk_constant_use *next;
    struct tensor *tensor;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list, and of all counts */
static struct tensor *tensors;

/* Give the pages back that lie inside of the tensor. */
static void drop_pages(char *data, size_t size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)data + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)data + size) / page * page;

    if (begin < end) {
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
    }
}

static void leave(struct wpk_constant_block *block)
{
    if (--block->users == 0) {
        wpk_memory_give(block->memory);
        free(block);
    }
}

wpk_err wpk_constants_init(struct wpk_constants *constants, size_t size)
{
    struct wpk_constant_block *block = calloc(1, sizeof(*block));
    char *memory = block != NULL ? wpk_memory_take(size) : NULL;

    if (memory == NULL) {
        free(block);
        return WPK_ENOMEM;
    }
    *block = (struct wpk_constant_block){.memory = memory, .users = 1};
    *constants = (struct wpk_constants){.memory = memory, .size = size, .block = block};
    return WPK_OK;
}

static struct tensor *find(const struct tensor *like)
{
    struct tensor *tensor = tensors;

    while (tensor != NULL &&
           (tensor->size != like->size || strcmp(tensor->checksum, like->checksum) != 0 ||
            memcmp(tensor->data, like->data, like->size) != 0)) {
        tensor = tensor->next;
    }
    return tensor;
}

void *wpk_constants_share(struct wpk_constants *constants, void *data, size_t size)
{
    struct tensor *own = calloc(1, sizeof(*own));
    struct wpk_constant_use *use = calloc(1, sizeof(*use));

    if (size < SHARED_SIZE_MIN || own == NULL || use == NULL) {
        free(own);
        free(use);
        return data;
    }
    *own = (struct tensor){.block = constants->block, .data = data, .size = size};
    wpk_checksum_hex(data, size, own->checksum);
    pthread_mutex_lock(&lock);
    struct tensor *tensor = find(own);
    if (tensor == NULL) {
        tensor = own;
        own->next = tensors;
        tensors = own;
        own->block->users++;
    }
    tensor->users++;
    *use = (struct wpk_constant_use){.next = constants->uses, .tensor = tensor};
    constants->uses = use;
    pthread_mutex_unlock(&lock);
    if (tensor != own) {
        free(own);
        drop_pages(data, size);
    }
    return tensor->data;
}

static void remove_tensor(struct tensor *tensor)
{
    struct tensor **at = &tensors;

    while (*at != tensor) {
        at = &(*at)->next;
    }
    *at = tensor->next;
    drop_pages(tensor->data, tensor->size);
    leave(tensor->block);
    free(tensor);
}

void wpk_constants_fini(struct wpk_constants *constants)
{
    if (constants->block == NULL) {
        return;
    }
    pthread_mutex_lock(&lock);
    while (constants->uses != NULL) {
        struct wpk_constant_use *use = constants->uses;
        constants->uses = use->next;
        if (--use->tensor->users == 0) {
            remove_tensor(use->tensor);
        }
        free(use);
    }
    leave(constants->block);
    pthread_mutex_unlock(&lock);
    *constants = (struct wpk_constants){0};
}

size_t wpk_constants_size(const struct wpk_constants *constants)
{
    size_t size = constants->size;

    pthread_mutex_lock(&lock);
    for (const struct wpk_constant_use *use = constants->uses; use != NULL; use = use->next) {
        size -= use->tensor->size - use->tensor->size / use->tensor->users;
    }
    pthread_mutex_unlock(&lock);
    return size;
}
