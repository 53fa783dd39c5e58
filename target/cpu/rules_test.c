/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of CPUs: what a device class has, what tiles it bears, and how bounds rank bodies. */
#include "target/cpu/rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct wpk_machine machine_of(const char *class)
{
    struct wpk_device device;
    struct wpk_machine machine;
    assert_int_equal(wpk_device_of_class(class, &device), WPK_OK);
    wpk_cpu_describe(&device, &machine);
    return machine;
}

/* ---- machines */

static void test_the_class_decides(void **state)
{
    (void)state;
    struct wpk_device device;
    struct wpk_machine machine, measured;
    assert_int_equal(wpk_device_of_class("cpu/AMD EPYC/zen4", &device), WPK_OK);
    wpk_cpu_describe(&device, &machine);
    device.cpu.l1_bytes = 1 << 20;
    device.cpu.l2_bytes = 2 << 20;
    device.cpu.l3_bytes = 3 << 20;
    device.peak_flops_per_s = 1e9;
    device.core_count = 7;
    snprintf(device.instance, sizeof(device.instance), "host3/cpu0");
    memset(&measured, 0, sizeof(measured));
    wpk_cpu_describe(&device, &measured);
    assert_int_equal(measured.cache_bytes[0], machine.cache_bytes[0]);
    assert_int_equal(measured.cache_bytes[2], machine.cache_bytes[2]);
    assert_true(measured.hertz == machine.hertz);
    assert_int_equal(machine.lanes_max, 16);
    assert_int_equal(machine.registers, 32);
}

static void test_generations(void **state)
{
    (void)state;
    assert_true(machine_of("cpu/AMD EPYC 9B14/zen4").multiply_adds == 1);
    assert_true(machine_of("cpu/AMD EPYC 9B45/zen4").multiply_adds == 2);
    assert_true(machine_of("cpu/AMD EPYC family 26/zen4").multiply_adds == 2);
    assert_true(machine_of("cpu/Intel(R) Xeon(R) Platinum/avx512").multiply_adds == 2);
    /* a model is worth its row only with the row's instructions */
    struct wpk_machine narrow = machine_of("cpu/AMD EPYC 9B45/sse41");
    assert_int_equal(narrow.lanes_max, 4);
    assert_int_equal(narrow.latency, 8);
    assert_int_equal(machine_of("cpu/AMD EPYC 9B45/avx").latency, 8);
    assert_int_equal(machine_of("cpu/AMD EPYC 9B45/avx2").latency, 5);
}

static void test_kinds(void **state)
{
    (void)state;
    struct wpk_device device = {.kind = "gpu"};
    assert_null(wpk_target_rules_of(device.kind));
}

/* ---- tiles */

static void expect(const struct wpk_tile *tile, const char *expected)
{
    struct wpk_machine machine = machine_of("cpu/any/avx512");
    const char *why = "";
    assert_int_equal(wpk_tile_is_legal(&machine, tile, &why), expected[0] == '\0');
    assert_int_equal(wpk_tile_is_legal(&machine, tile, NULL), expected[0] == '\0');
    assert_string_equal(why, expected);
}

static void test_tiles(void **state)
{
    (void)state;
    struct wpk_tile tile = {.reuses = true, .accumulators = 28, .vectors = 3, .unrolled = 256};
    tile.least = 1;
    expect(&tile, "");
    tile.vectors = 4;
    expect(&tile, "the accumulators do not fit the registers");
    tile.reuses = false;
    expect(&tile, "");
    tile.unrolled = 257;
    expect(&tile, "the innermost reduction loop is unrolled too far");
    tile.unrolled = 1;
    tile.arithmetic = 2200; /* 7.4 bytes each, of 16 KB */
    expect(&tile, "");
    tile.arithmetic = 2300;
    expect(&tile, "more code than a loop should have");
    tile.arithmetic = 0;
    tile.scattered = 600; /* 1.4 ms each */
    expect(&tile, "");
    tile.scattered = 650;
    expect(&tile, "it would take too long to build");
}

static void test_copies(void **state)
{
    (void)state;
    struct wpk_tile tile = {.copies = true, .statements = 16, .least = 1};
    expect(&tile, "");
    tile.statements = 17;
    expect(&tile, "too many unrolled copies");
    tile.least = 17; /* the smallest tile there is */
    tile.moves = 5000;
    expect(&tile, "");
    tile.statements = 18;
    expect(&tile, "more code than a loop should have");
}

static void test_construction(void **state)
{
    (void)state;
    struct wpk_machine machine = machine_of("cpu/any/avx512");
    struct wpk_tile tile = {.reuses = true, .lanes = 16, .covered = 1, .vectors = 2, .points = 8};
    tile.loads = 10;
    double good = wpk_tile_score(&machine, &tile);
    tile.vectors = 1; /* fewer accumulators */
    tile.loads = 9;
    assert_true(wpk_tile_score(&machine, &tile) < good);
    tile.vectors = 2;
    tile.loads = 40; /* vectors are gathered */
    assert_true(wpk_tile_score(&machine, &tile) < good);
    tile.loads = 10;
    tile.covered = 0.8;
    assert_true(wpk_tile_score(&machine, &tile) < good);
    tile.covered = 1;
    tile.lanes = 8;
    assert_true(wpk_tile_score(&machine, &tile) < good);
}

/* ---- bounds */

static struct wpk_features one_body(void)
{
    struct wpk_features features = {.body_count = 1, .bytes = 64 << 20};
    features.body[0] = (struct wpk_body){.runs = 1e6,
                                         .lanes = 16,
                                         .arithmetic = 16,
                                         .loads = 10,
                                         .accumulators = 16,
                                         .terms = 1,
                                         .parallel = 1};
    return features;
}

static double bound_of(const struct wpk_features *features, int threads)
{
    struct wpk_machine machine = machine_of("cpu/any/avx512");
    return wpk_features_seconds(&machine, features, threads);
}

static void assert_times(double value, double of, double factor)
{
    assert_true(value > of * factor * 0.999 && value < of * factor * 1.001);
}

static void test_bounds_of_ports(void **state)
{
    (void)state;
    struct wpk_features f = one_body();
    double plain = bound_of(&f, 1);
    assert_times(plain, 1e6 * 16 / 2, 1 / 3e9); /* two multiply-adds in a cycle */
    f.body[0].loads = 32;
    assert_times(bound_of(&f, 1), plain, 2);
    f.body[0].loads = 10;
    f.body[0].stores = 16; /* one in a cycle */
    assert_times(bound_of(&f, 1), plain, 2);
    f.body[0].stores = 0;
    f.body[0].singles = 8;
    assert_times(bound_of(&f, 1), plain, 2);
    f.body[0].singles = 0;
    f.body[0].terms = 4; /* one chain of 4 cycles after the other */
    assert_times(bound_of(&f, 1), plain, 2);
    f.body[0].terms = 1;
    f.body[0].accumulators = 36 - 1 + 12; /* 16 too many: loaded and stored again */
    assert_times(bound_of(&f, 1), plain, 2);
}

static void test_bounds_of_the_front_end(void **state)
{
    (void)state;
    struct wpk_features f = one_body();
    f.body[0].arithmetic = f.body[0].loads = 10;
    f.body[0].stores = 5;
    /* 25 instructions and those of the loop's end, 5 in a cycle */
    assert_times(bound_of(&f, 1), 1e6 * (25 + 3) / 5, 1 / 3e9);
}

/* Zen 4 has two units of 256 bits. */
static void test_bounds_of_narrow_vectors(void **state)
{
    (void)state;
    struct wpk_features f = one_body();
    struct wpk_machine machine = machine_of("cpu/AMD EPYC/zen4");
    double wide = wpk_features_seconds(&machine, &f, 1);
    f.body[0].lanes = 8;
    assert_times(wpk_features_seconds(&machine, &f, 1), wide, 0.5);
    f.body[0].lanes = 4;
    assert_times(wpk_features_seconds(&machine, &f, 1), wide, 0.5);
}

static void test_bounds_of_threads(void **state)
{
    (void)state;
    struct wpk_features f = one_body();
    double plain = bound_of(&f, 1);
    assert_times(bound_of(&f, 2), plain, 1); /* not parallel */
    f.body[0].parallel = 4;
    assert_times(bound_of(&f, 2), plain, 0.5);
    f.body[0].parallel = 3;
    assert_times(bound_of(&f, 2), plain, 2.0 / 3);
}

static void test_bounds_of_traffic(void **state)
{
    (void)state;
    struct wpk_features f = one_body();
    double plain = bound_of(&f, 1);
    f.body[0].traffic_bytes[0] = 8e6 * 48 * 2; /* twice the time of computing */
    assert_times(bound_of(&f, 1), plain, 2 + 0.3);
    f.bytes = 1 << 10; /* all of it stays in the first cache */
    assert_times(bound_of(&f, 1), plain, 1);
}

/* The smallest tile comes first; then one for each width of vectors. */
static void test_neutral_rests(void **state)
{
    (void)state;
    static const int wide[] = {1, 4, 8, 16, 0}, narrow[] = {1, 4, 0};
    struct wpk_machine machine = machine_of("cpu/any/avx512");
    for (int i = 0, at = 0; i < 5; i++) {
        at = wpk_mask_width(&machine, at);
        assert_int_equal(at, wide[i]);
    }
    machine = machine_of("cpu/any/sse41");
    for (int i = 0, at = 0; i < 3; i++) {
        at = wpk_mask_width(&machine, at);
        assert_int_equal(at, narrow[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_class_decides),
        cmocka_unit_test(test_generations),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_construction),
        cmocka_unit_test(test_neutral_rests),
        cmocka_unit_test(test_bounds_of_ports),
        cmocka_unit_test(test_bounds_of_the_front_end),
        cmocka_unit_test(test_bounds_of_narrow_vectors),
        cmocka_unit_test(test_bounds_of_threads),
        cmocka_unit_test(test_bounds_of_traffic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
