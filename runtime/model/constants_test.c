/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define LARGE ((size_t)1 << 20)
#define SMALL ((size_t)1 << 10)
#define SIZE (LARGE + SMALL)

/* Constants as a plan prepares them: a large tensor of one byte, then a small one. */
static char *make(struct wpk_constants *constants, char byte)
{
    assert_int_equal(wpk_constants_init(constants, SIZE), WPK_OK);
    memset(constants->memory, byte, SIZE);
    void *small = constants->memory + LARGE;
    assert_ptr_equal(wpk_constants_share(constants, small, SMALL), small);
    return wpk_constants_share(constants, constants->memory, LARGE);
}

static bool is_all(const char *data, char byte)
{
    return data[0] == byte && memcmp(data, data + 1, LARGE - 1) == 0;
}

/* Bytes of the large tensor's own place that are in memory. */
static size_t resident(const struct wpk_constants *constants)
{
    unsigned char pages[LARGE / 4096 + 1];
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)constants->memory + page - 1) / page * page;
    size_t size = ((uintptr_t)constants->memory + LARGE - begin) / page * page, found = 0;
    assert_int_equal(mincore((void *)begin, size, pages), 0);
    for (size_t i = 0; i < size / page; i++) {
        found += (pages[i] & 1) != 0 ? page : 0;
    }
    return found;
}

static void test_equal_tensors_are_one(void **state)
{
    (void)state;
    struct wpk_constants first, second, other;
    char *data = make(&first, 7);
    assert_ptr_equal(data, first.memory);
    assert_int_equal(wpk_constants_size(&first), SIZE);
    assert_ptr_equal(make(&second, 7), data);
    const char *different = make(&other, 8);
    assert_ptr_equal(different, other.memory);
    assert_int_equal(wpk_constants_size(&first), LARGE / 2 + SMALL);
    assert_int_equal(wpk_constants_size(&second), LARGE / 2 + SMALL);
    assert_int_equal(wpk_constants_size(&other), SIZE);
    assert_true(resident(&second) == 0 && resident(&other) > LARGE / 2);
    assert_true(second.memory[LARGE] == 7 && second.memory[SIZE - 1] == 7);

    /* The tensor outlives the plan that prepared it. */
    wpk_constants_fini(&first);
    assert_true(is_all(data, 7));
    assert_int_equal(wpk_constants_size(&second), SIZE);
    assert_ptr_equal(make(&first, 7), data);
    wpk_constants_fini(&second);
    assert_true(is_all(data, 7));
    wpk_constants_fini(&first);
    wpk_constants_fini(&first);
    assert_true(is_all(other.memory, 8));
    wpk_constants_fini(&other);
}

/* A plan may have a tensor twice. */
static void test_a_tensor_twice(void **state)
{
    (void)state;
    struct wpk_constants constants;
    assert_int_equal(wpk_constants_init(&constants, 2 * LARGE), WPK_OK);
    memset(constants.memory, 3, 2 * LARGE);
    char *one = wpk_constants_share(&constants, constants.memory, LARGE);
    assert_ptr_equal(wpk_constants_share(&constants, constants.memory + LARGE, LARGE), one);
    assert_int_equal(wpk_constants_size(&constants), LARGE);
    assert_true(is_all(one, 3));
    wpk_constants_fini(&constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_tensors_are_one),
        cmocka_unit_test(test_a_tensor_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
