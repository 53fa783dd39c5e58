/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/verify/answers.h"

#include "common/fs.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Lay the arrays out in one block, the same in memory and in the file. */
void wpk_answers_point_into(struct wpk_answers *answers)
{
    char *at = (char *)answers->block + sizeof(struct wpk_answers_head);
    size_t count = (size_t)answers->count;
    answers->points = NULL;
    if (!answers->whole) {
        answers->points = (const int64_t *)at;
        at += count * (size_t)answers->rank * sizeof(int64_t);
    }
    answers->value = (const double *)at;
    answers->magnitude = answers->value + count * (size_t)answers->draws;
}

size_t wpk_answers_block_size(bool whole, int rank, int64_t count, int draws)
{
    size_t each = 2 * sizeof(double) * (size_t)draws + (whole ? 0 : (size_t)rank * sizeof(int64_t));
    return sizeof(struct wpk_answers_head) + (size_t)count * each;
}

wpk_err wpk_answers_save(const struct wpk_answers *answers, const char *path, struct wpk_diag *diag)
{
    return wpk_fs_write(path, answers->block, answers->block_size, 0644, diag);
}

static wpk_err adopt(void *block, size_t size, struct wpk_answers *out)
{
    struct wpk_answers_head head;
    if (size < sizeof(head)) {
        return WPK_ECORRUPT;
    }
    memcpy(&head, block, sizeof(head));
    if (head.magic != WPK_ANSWERS_MAGIC || head.rank < 0 || head.rank > WPK_RANK_MAX ||
        head.count < 0 || head.count > WPK_ELEMENTS_MAX || head.kind >= WPK_INPUT_KINDS ||
        head.domain >= WPK_DRAW_DOMAINS || head.draws < 1 ||
        size != wpk_answers_block_size(head.whole, head.rank, head.count, head.draws)) {
        return WPK_ECORRUPT;
    }
    *out = (struct wpk_answers){
        .inputs = {.kind = (enum wpk_input_kind)head.kind,
                   .domain = (enum wpk_draw_domain)head.domain,
                   .seed = head.seed,
                   .constants_seed = head.constants_seed,
                   .large = head.large,
                   .rows = head.rows},
        .whole = head.whole,
        .exact = head.exact,
        .rank = head.rank,
        .count = head.count,
        .draws = head.draws,
        .magnitude_max = head.magnitude_max,
        .direct_error = head.direct_error,
        .block = block,
        .block_size = size,
        .mapped = true,
    };
    memcpy(out->seen, head.seen, sizeof(out->seen));
    wpk_answers_point_into(out);
    return WPK_OK;
}

wpk_err wpk_answers_load(const char *path, struct wpk_answers *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return WPK_ENOENT;
    }
    struct stat stat;
    wpk_err err = WPK_ECORRUPT;
    if (fstat(fd, &stat) == 0 && stat.st_size > 0) {
        size_t size = (size_t)stat.st_size;
        void *block = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (block != MAP_FAILED) {
            err = adopt(block, size, out);
            if (err != WPK_OK) {
                munmap(block, size);
            }
        }
    }
    close(fd);
    return err;
}
