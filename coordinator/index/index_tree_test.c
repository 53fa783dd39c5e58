/* SPDX-License-Identifier: Apache-2.0 */
/* Trees against a sorted array, and what two versions of one share. */
#include "coordinator/index/index_tree.h"

#include "common/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MANY 100000

/* What a tree should have. */
struct model {
    struct wpk_index_slot slots[4096]; /* [count], in order */
    uint32_t count;
};

static bool is_below(const struct wpk_index_slot *a, uint64_t key, uint64_t kernel_id)
{
    return a->key < key || (a->key == key && a->kernel_id < kernel_id);
}

static uint32_t place_of(const struct model *model, uint64_t key, uint64_t kernel_id)
{
    uint32_t at = 0;
    while (at < model->count && is_below(&model->slots[at], key, kernel_id)) {
        at++;
    }
    return at;
}

static const struct wpk_served *entry(const struct model *model, uint32_t at, uint64_t key)
{
    return at < model->count && model->slots[at].key == key ? model->slots[at].to.served : NULL;
}

/* Both ways from there, and back. */
static void check_place(const struct wpk_index_node *root, const struct model *model, uint64_t key,
                        uint64_t kernel_id)
{
    struct wpk_index_cursor cursor;
    uint32_t at = place_of(model, key, kernel_id);
    wpk_index_seek(&cursor, root, key, kernel_id);
    for (uint32_t i = at; i == at || entry(model, i - 1, key) != NULL; i++) {
        assert_ptr_equal(wpk_index_next(&cursor), entry(model, i, key));
    }
    wpk_index_seek(&cursor, root, key, kernel_id);
    for (uint32_t i = at;; i--) {
        const struct wpk_served *want = i > 0 ? entry(model, i - 1, key) : NULL;
        assert_ptr_equal(wpk_index_prev(&cursor), want);
        if (want == NULL) {
            break;
        }
    }
}

static struct wpk_index_slot make_slot(uint64_t key, uint64_t kernel_id)
{
    static const char base[1 << 20]; /* addresses that differ */
    uint64_t place = (key * 4099 + kernel_id) % sizeof base;
    return (struct wpk_index_slot){
        key, kernel_id, .to.served = (const struct wpk_served *)(const void *)&base[place]};
}

static void trees_hold_what_was_put(void **state)
{
    static struct model model;
    struct wpk_rng rng;
    struct wpk_index_node *root = NULL;
    (void)state;
    model.count = 0;
    wpk_rng_seed(&rng, 7);
    for (uint32_t step = 0; step < 6000; step++) {
        struct wpk_index_edit edit = {.version = 1 + step / 3};
        struct wpk_index_slot slot =
            make_slot(wpk_rng_below(&rng, 9), wpk_rng_below(&rng, step < 4000 ? 500 : 60));
        uint32_t at = place_of(&model, slot.key, slot.kernel_id);
        bool there = at < model.count && model.slots[at].key == slot.key &&
                     model.slots[at].kernel_id == slot.kernel_id;
        size_t tail = (model.count - at) * sizeof model.slots[0];
        if (there) {
            root = wpk_index_tree_take(&edit, root, slot.key, slot.kernel_id);
            memmove(&model.slots[at], &model.slots[at + 1], tail - sizeof model.slots[0]);
            model.count--;
        } else if (model.count < 4096) {
            root = wpk_index_tree_put(&edit, root, &slot);
            memmove(&model.slots[at + 1], &model.slots[at], tail);
            model.slots[at] = slot;
            model.count++;
        }
        check_place(root, &model, slot.key, slot.kernel_id);
        check_place(root, &model, wpk_rng_below(&rng, 11), wpk_rng_below(&rng, 600));
        check_place(root, &model, wpk_rng_below(&rng, 9), UINT64_MAX);
        wpk_index_nodes_free(edit.replaced);
    }
    while (model.count > 0) {
        struct wpk_index_edit edit = {.version = 9999};
        const struct wpk_index_slot *slot = &model.slots[--model.count];
        root = wpk_index_tree_take(&edit, root, slot->key, slot->kernel_id);
        wpk_index_nodes_free(edit.replaced);
    }
    assert_null(root);
}

static struct wpk_index_node *make_many(void)
{
    struct wpk_index_slot *slots = calloc(MANY, sizeof *slots);
    assert_non_null(slots);
    for (uint32_t i = 0; i < MANY; i++) {
        slots[i] = make_slot(i / 10, 2 * i);
    }
    struct wpk_index_node *root = wpk_index_tree_new(slots, MANY, 1);
    free(slots);
    return root;
}

static uint32_t height_of(const struct wpk_index_node *root)
{
    return root->leaf ? 1 : 1 + height_of(root->slots[0].to.child);
}

static uint32_t length_of(const struct wpk_index_node *nodes)
{
    uint32_t count = 0;
    for (; nodes != NULL; nodes = nodes->next) {
        count++;
    }
    return count;
}

/* A kernel more or less makes some nodes, not an array of all. */
static void versions_share_what_stayed(void **state)
{
    struct wpk_index_node *before = make_many();
    struct wpk_index_edit edit = {.version = 2};
    struct wpk_index_cursor cursor;
    struct wpk_index_slot slot = make_slot(5000, 100001);
    uint32_t height = height_of(before);
    (void)state;
    assert_true(height <= 4);
    struct wpk_index_node *after = wpk_index_tree_put(&edit, before, &slot);
    assert_true(edit.made_count <= 2 * height + 1);
    assert_int_equal(length_of(edit.replaced), height);
    uint32_t made = edit.made_count;
    after = wpk_index_tree_take(&edit, after, 5000, 100002);
    assert_true(edit.made_count - made <= height);
    assert_int_equal(length_of(edit.replaced), height); /* what the edit made is its own */
    /* Each has its own, and whoever reads the one before is not disturbed. */
    wpk_index_seek(&cursor, after, 5000, 100001);
    assert_ptr_equal(wpk_index_next(&cursor), slot.to.served);
    wpk_index_seek(&cursor, before, 5000, 100001);
    assert_ptr_equal(wpk_index_next(&cursor), make_slot(5000, 100002).to.served);
    wpk_index_nodes_free(edit.replaced);
    wpk_index_tree_free(after);
}

static void a_tree_of_nothing(void **state)
{
    struct wpk_index_cursor cursor;
    (void)state;
    assert_null(wpk_index_tree_new(NULL, 0, 1));
    wpk_index_seek(&cursor, NULL, 1, 1);
    assert_null(wpk_index_next(&cursor));
    assert_null(wpk_index_prev(&cursor));
    wpk_index_tree_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_hold_what_was_put),
        cmocka_unit_test(versions_share_what_stayed),
        cmocka_unit_test(a_tree_of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
