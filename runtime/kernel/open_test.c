/* SPDX-License-Identifier: Apache-2.0 */
/* Choices: which entry is taken, why the others are not, and which names the arguments have.
 *
 * The kernels of the fixture compute Y[i,j] = X[i,j] * 2 * W[j] + S[j]. */
#include "common/crypto.h"
#include "common/fs.h"
#include "runtime/kernel/kernel.h"
#include "runtime/kernel/trust.h"
#include "schema/draw.h"
#include "tests/kernel_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 5
#define COLUMNS 16
#define COUNT (ROWS * COLUMNS)
#define SEED 7
#define POINTS 4

/* Two kernels in one directory, "kernel.so" and "plain.so", and a choice to be changed by tests. */
struct scene {
    struct wpk_kernel_fixture fixture;
    struct wpk_choice choice;
    char path[128]; /* of the choice */
    char public_key[WPK_SIGN_PUBLIC_HEX_SIZE];
    uint8_t key[WPK_SIGN_KEY_SIZE];
};

static void hash_file(const struct scene *scene, const char *name, char *out)
{
    struct wpk_buf file = {0};
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", scene->fixture.directory, name);
    assert_int_equal(wpk_fs_read(path, WPK_KERNEL_SIZE_MAX, &file, NULL), WPK_OK);
    wpk_crypto_sha256_hex(file.data, file.size, out);
    wpk_buf_fini(&file);
}

static void copy_file(const struct scene *scene, const char *from, const char *to)
{
    struct wpk_buf file = {0};
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", scene->fixture.directory, from);
    assert_int_equal(wpk_fs_read(path, WPK_KERNEL_SIZE_MAX, &file, NULL), WPK_OK);
    snprintf(path, sizeof(path), "%s/%s", scene->fixture.directory, to);
    assert_int_equal(wpk_fs_write(path, file.data, file.size, 0644, NULL), WPK_OK);
    wpk_buf_fini(&file);
}

static struct wpk_choice_entry *add_file(struct scene *scene, enum wpk_choice_kind kind,
                                         const char *name)
{
    struct wpk_choice_entry *entry = &scene->choice.chain[scene->choice.chain_count++];

    entry->kind = kind;
    snprintf(scene->choice.plain_missing, WPK_CHOICE_REASON_MAX, "%s",
             kind == WPK_CHOICE_PLAIN ? "" : "none was built");
    snprintf(entry->file, sizeof(entry->file), "%s", name);
    hash_file(scene, name, entry->sha256);
    return entry;
}

static void bind(struct wpk_choice_list *list, const char *name, const char *canonical)
{
    struct wpk_choice_tensor *tensor = &list->tensor[list->count++];

    snprintf(tensor->name, sizeof(tensor->name), "%s", name);
    snprintf(tensor->canonical, sizeof(tensor->canonical), "%s", canonical);
}

static void fill_test(struct wpk_choice_test *test)
{
    struct wpk_choice_expected *expected = &test->output[0];
    static const int64_t points[POINTS] = {0, 17, 40, COUNT - 1};
    float x[COUNT];
    float w[COLUMNS];
    float s[COLUMNS];

    wpk_draw_tensor(SEED, "X", WPK_F32, WPK_DRAW_ANY, COUNT, x);
    wpk_draw_tensor(SEED, "W", WPK_F32, WPK_DRAW_ANY, COLUMNS, w);
    wpk_draw_tensor(SEED, "S", WPK_F32, WPK_DRAW_ANY, COLUMNS, s);
    test->seed = SEED;
    expected->tolerance = 1e-5;
    for (int i = 0; i < POINTS; i++) {
        int64_t column = points[i] % COLUMNS;
        expected->point[i] = points[i];
        expected->value[i] = (double)x[points[i]] * 2 * (double)w[column] + (double)s[column];
    }
    expected->count = POINTS;
}

/* The asker calls W "scale" and S "shift", and names the shift first. */
static int set_up(void **state)
{
    static struct scene scene;
    static const uint8_t seed[WPK_SIGN_SEED_SIZE] = {3};
    struct wpk_manifest manifest;
    uint8_t public_key[WPK_SIGN_PUBLIC_SIZE];

    scene = (struct scene){0};
    wpk_kernel_fixture_manifest(&manifest, ROWS, COLUMNS, NULL);
    wpk_kernel_fixture_init(&scene.fixture, &manifest, false);
    copy_file(&scene, "kernel.so", "plain.so");
    snprintf(scene.path, sizeof(scene.path), "%s.choice", scene.fixture.path);
    wpk_crypto_sign_key(seed, scene.key, public_key);
    wpk_crypto_hex(public_key, sizeof(public_key), scene.public_key);
    scene.choice = (struct wpk_choice){
        .op = strdup("made by hand"), .accuracy = WPK_ACCURACY_STANDARD, .threads = 1};
    memset(scene.choice.fingerprint, 'a', WPK_CHOICE_HASH_MAX - 1);
    snprintf(scene.choice.layouts, sizeof(scene.choice.layouts), "fixed");
    bind(&scene.choice.inputs, "image", "X");
    bind(&scene.choice.constants, "shift", "S");
    bind(&scene.choice.constants, "scale", "W");
    bind(&scene.choice.outputs, "result", "Y");
    fill_test(&scene.choice.test);
    add_file(&scene, WPK_CHOICE_KERNEL, "kernel.so");
    *state = &scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;

    wpk_choice_fini(&scene->choice);
    wpk_kernel_fixture_fini(&scene->fixture);
    return 0;
}

static void write_choice(const struct scene *scene)
{
    struct wpk_buf text = {0};
    uint8_t signature[WPK_SIGNATURE_SIZE];
    char hex[WPK_SIGNATURE_HEX_SIZE + 1];
    char path[160];

    assert_int_equal(wpk_choice_encode(&scene->choice, &text), WPK_OK);
    assert_int_equal(wpk_fs_write(scene->path, text.data, text.size, 0644, NULL), WPK_OK);
    wpk_crypto_sign(scene->key, text.data, text.size, signature);
    wpk_crypto_hex(signature, sizeof(signature), hex);
    snprintf(path, sizeof(path), "%s.sig", scene->path);
    assert_int_equal(wpk_fs_write(path, hex, strlen(hex), 0644, NULL), WPK_OK);
    wpk_buf_fini(&text);
}

/* With all that can be checked. */
static wpk_err open_choice(const struct scene *scene, struct wpk_kernel **out,
                           struct wpk_diag *diag)
{
    const struct wpk_open_options options = {
        .public_key = scene->public_key, .self_test = true, .library_dir = "/nowhere"};

    write_choice(scene);
    return wpk_open(scene->path, &options, out, diag);
}

static struct wpk_kernel *expect(const struct scene *scene, int index, const char *kind,
                                 const char *reason)
{
    struct wpk_kernel *kernel = NULL;
    struct wpk_diag diag = {0};

    if (open_choice(scene, &kernel, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    struct wpk_choice_taken taken = wpk_kernel_choice(kernel);
    assert_int_equal(taken.index, index);
    assert_string_equal(taken.kind, kind);
    if (strstr(taken.reason, reason) == NULL || (reason[0] == '\0' && taken.reason[0] != '\0')) {
        fail_msg("'%s' is not in '%s'", reason, taken.reason);
    }
    return kernel;
}

/* Compute with the names of the request, for kernels with any order of arguments. */
static void compute(struct wpk_kernel *kernel)
{
    static float x[COUNT], w[COLUMNS], s[COLUMNS], y[COUNT];
    struct wpk_context *context = NULL;

    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)i;
    }
    for (int j = 0; j < COLUMNS; j++) {
        w[j] = (float)(j + 1);
        s[j] = (float)(100 * j);
    }
    const struct wpk_tensor_data constants[] = {{"scale", w, sizeof(w)}, {"shift", s, sizeof(s)}};
    const struct wpk_tensor_data input = {"image", x, sizeof(x)};
    const struct wpk_tensor_data output = {"result", y, sizeof(y)};
    assert_int_equal(wpk_kernel_prepare(kernel, constants, 2, NULL), WPK_OK);
    assert_int_equal(wpk_context_new(NULL, &context), WPK_OK);
    assert_int_equal(wpk_kernel_run(kernel, context, &input, 1, &output, 1), WPK_OK);
    for (int i = 0; i < COUNT; i++) {
        assert_true(y[i] == x[i] * 2 * w[i % COLUMNS] + s[i % COLUMNS]);
    }
    wpk_context_free(context);
}

static void takes_the_best_in_the_askers_names(void **state)
{
    struct scene *scene = *state;

    add_file(scene, WPK_CHOICE_PLAIN, "plain.so");
    struct wpk_kernel *kernel = expect(scene, 0, "kernel", "");
    assert_string_equal(wpk_kernel_input(kernel, 0)->name, "image");
    assert_string_equal(wpk_kernel_constant(kernel, 0)->name, "shift");
    assert_string_equal(wpk_kernel_constant(kernel, 1)->name, "scale");
    assert_string_equal(wpk_kernel_output(kernel, 0)->name, "result");
    compute(kernel);
    wpk_kernel_close(kernel);
}

/* Scale and shift have one shape: in silence they would be exchanged. */
static void positions_and_canonical_names_are_refused(void **state)
{
    static float w[COLUMNS], s[COLUMNS];
    struct wpk_diag diag = {0};
    struct wpk_kernel *kernel = expect(*state, 0, "kernel", "");
    const struct wpk_tensor_data by_position[] = {{NULL, s, sizeof(s)}, {NULL, w, sizeof(w)}};
    const struct wpk_tensor_data canonical[] = {{"S", s, sizeof(s)}, {"W", w, sizeof(w)}};

    assert_int_equal(wpk_kernel_prepare(kernel, by_position, 2, &diag), WPK_EINVAL);
    assert_non_null(strstr(diag.text, "no name"));
    assert_int_equal(wpk_kernel_prepare(kernel, canonical, 2, NULL), WPK_EINVAL);
    wpk_kernel_close(kernel);
}

static void a_changed_file_is_passed_over(void **state)
{
    struct scene *scene = *state;

    add_file(scene, WPK_CHOICE_PLAIN, "plain.so");
    memset(scene->choice.chain[0].sha256, 'b', WPK_CHOICE_HASH_MAX - 1);
    struct wpk_kernel *kernel =
        expect(scene, 1, "plain", "is not the object that the choice names");
    compute(kernel);
    wpk_kernel_close(kernel);
}

static void a_missing_file_is_passed_over(void **state)
{
    struct scene *scene = *state;

    add_file(scene, WPK_CHOICE_PLAIN, "plain.so");
    snprintf(scene->choice.chain[0].file, WPK_CHOICE_FILE_MAX, "lost.so");
    wpk_kernel_close(expect(scene, 1, "plain", "0 (kernel): "));
}

static void another_operators_kernel_is_passed_over(void **state)
{
    struct scene *scene = *state;
    struct wpk_kernel *kernel = NULL;
    struct wpk_diag diag = {0};

    memset(scene->choice.fingerprint, 'c', WPK_CHOICE_HASH_MAX - 1);
    assert_int_equal(open_choice(scene, &kernel, &diag), WPK_EEXHAUSTED);
    assert_non_null(strstr(diag.text, "another operator"));
    assert_non_null(strstr(diag.text, ", and it has no plain kernel, because none was built:"));
}

static void unknown_tensors_are_passed_over(void **state)
{
    struct scene *scene = *state;
    struct wpk_kernel *kernel = NULL;
    struct wpk_diag diag = {0};

    snprintf(scene->choice.constants.tensor[0].canonical, WPK_NAME_MAX, "t9");
    assert_int_equal(open_choice(scene, &kernel, &diag), WPK_EEXHAUSTED);
    assert_non_null(strstr(diag.text, "no tensor t9"));
    scene->choice.constants.count = 1;
    assert_int_equal(open_choice(scene, &kernel, &diag), WPK_EEXHAUSTED);
}

static void a_wrong_result_is_passed_over(void **state)
{
    struct scene *scene = *state;
    struct wpk_kernel *kernel = NULL;
    struct wpk_diag diag = {0};

    scene->choice.test.output[0].value[2] += 1;
    assert_int_equal(open_choice(scene, &kernel, &diag), WPK_EEXHAUSTED);
    assert_non_null(strstr(diag.text, "self-test: 'result'"));
    scene->choice.test.output[0].point[2] = COUNT;
    assert_int_equal(open_choice(scene, &kernel, &diag), WPK_EEXHAUSTED);
    scene->choice.test.output[0].count = 0;
    assert_int_equal(open_choice(scene, &kernel, &diag), WPK_EUNSUPPORTED);
}

/* The kernel writes its first output and leaves the second one as it is. */
static void a_wrong_second_output_is_passed_over(void **state)
{
    struct scene *scene = *state;
    struct wpk_kernel_fixture fixture;
    struct wpk_manifest manifest;
    struct wpk_kernel *kernel = NULL;
    struct wpk_buf file = {0};
    struct wpk_diag diag = {0};
    float x[COLUMNS];

    wpk_kernel_fixture_manifest_bare(&manifest);
    manifest.outputs[manifest.output_count] = manifest.outputs[0];
    snprintf(manifest.outputs[manifest.output_count++].name, WPK_NAME_MAX, "Z");
    snprintf(manifest.main[manifest.main_count++], WPK_NAME_MAX, "Z");
    wpk_kernel_fixture_init(&fixture, &manifest, true);
    assert_int_equal(wpk_fs_read(fixture.path, WPK_KERNEL_SIZE_MAX, &file, NULL), WPK_OK);
    assert_int_equal(wpk_fs_write(scene->fixture.path, file.data, file.size, 0644, NULL), WPK_OK);
    hash_file(scene, "kernel.so", scene->choice.chain[0].sha256);
    scene->choice.constants.count = 0;
    bind(&scene->choice.outputs, "second", "Z");
    wpk_draw_tensor(SEED, "X", WPK_F32, WPK_DRAW_ANY, COLUMNS, x);
    for (int i = 0; i < 2; i++) {
        scene->choice.test.output[i] =
            (struct wpk_choice_expected){.value = {(double)x[0]}, .count = 1, .tolerance = 1e-5};
    }
    assert_int_equal(open_choice(scene, &kernel, &diag), WPK_EEXHAUSTED);
    assert_non_null(strstr(diag.text, "self-test: 'second' is 0 at 0"));
    scene->choice.test.output[1].count = 0;
    assert_int_equal(open_choice(scene, &kernel, &diag), WPK_EUNSUPPORTED);
    wpk_buf_fini(&file);
    wpk_kernel_fixture_fini(&fixture);
}

static void a_device_that_lacks_something_gets_the_plain_one(void **state)
{
    struct scene *scene = *state;
    struct wpk_kernel_fixture wide;
    struct wpk_manifest manifest;
    struct wpk_kernel *kernel = NULL;
    struct wpk_buf file = {0};

    wpk_kernel_fixture_manifest(&manifest, ROWS, COLUMNS, NULL);
    manifest.needs.flags = WPK_CPU_SET_AVX512;
    wpk_kernel_fixture_init(&wide, &manifest, false);
    assert_int_equal(wpk_fs_read(wide.path, WPK_KERNEL_SIZE_MAX, &file, NULL), WPK_OK);
    assert_int_equal(wpk_fs_write(scene->fixture.path, file.data, file.size, 0644, NULL), WPK_OK);
    hash_file(scene, "kernel.so", scene->choice.chain[0].sha256);
    add_file(scene, WPK_CHOICE_PLAIN, "plain.so");
    write_choice(scene);
    assert_int_equal(wpk_open(scene->path,
                              &(struct wpk_open_options){.device_class = "cpu/m/sse41"}, &kernel,
                              NULL),
                     WPK_OK);
    assert_int_equal(wpk_kernel_choice(kernel).index, 1);
    assert_non_null(strstr(wpk_kernel_choice(kernel).reason, "avx512"));
    wpk_kernel_close(kernel);
    wpk_buf_fini(&file);
    wpk_kernel_fixture_fini(&wide);
}

static void unsigned_and_changed_choices_are_refused(void **state)
{
    struct scene *scene = *state;
    const struct wpk_open_options signed_only = {.public_key = scene->public_key};
    struct wpk_kernel *kernel = NULL;
    struct wpk_buf text = {0};
    char path[160];

    write_choice(scene);
    assert_int_equal(wpk_fs_read(scene->path, WPK_CHOICE_SIZE_MAX, &text, NULL), WPK_OK);
    *strstr(text.data, "hand") = 'H';
    assert_int_equal(wpk_fs_write(scene->path, text.data, text.size, 0644, NULL), WPK_OK);
    assert_int_equal(wpk_open(scene->path, &signed_only, &kernel, NULL), WPK_EACCES);
    assert_int_equal(wpk_open(scene->path, NULL, &kernel, NULL), WPK_OK); /* nobody asked */
    wpk_kernel_close(kernel);
    snprintf(path, sizeof(path), "%s.sig", scene->path);
    assert_int_equal(remove(path), 0);
    assert_int_equal(wpk_open(scene->path, &signed_only, &kernel, NULL), WPK_EACCES);
    assert_int_equal(wpk_fs_write(scene->path, "{}", 2, 0644, NULL), WPK_OK);
    assert_int_equal(wpk_open(scene->path, NULL, &kernel, NULL), WPK_ECORRUPT);
    assert_int_equal(wpk_open("/nowhere/c6.so.choice", NULL, &kernel, NULL), WPK_ENOENT);
    wpk_buf_fini(&text);
}

static void libraries_that_are_not_there_are_passed_over(void **state)
{
    struct scene *scene = *state;
    struct wpk_choice_entry *entry = &scene->choice.chain[0];

    *entry = (struct wpk_choice_entry){.kind = WPK_CHOICE_VENDOR};
    snprintf(entry->provider, sizeof(entry->provider), "onednn");
    snprintf(entry->version, sizeof(entry->version), "3.2.0");
    entry->recipe = calloc(1, sizeof(*entry->recipe));
    struct wpk_recipe *recipe = entry->recipe;
    *recipe = (struct wpk_recipe){.kind = WPK_RECIPE_ELTWISE,
                                  .tensor_count = 2,
                                  .use = {WPK_RECIPE_INPUT, WPK_RECIPE_OUTPUT},
                                  .post_count = 1};
    for (int i = 0; i < 2; i++) {
        snprintf(recipe->tensor[i].name, WPK_NAME_MAX, "%s", i == 0 ? "X" : "Y");
        recipe->tensor[i].type =
            (struct wpk_tensor_type){.rank = 1, .extent = {8}, .layout = wpk_layout_row_major(1)};
    }
    for (int role = 0; role < WPK_RECIPE_ROLE_COUNT; role++) {
        int tensor = role == WPK_RECIPE_SRC ? 0 : role == WPK_RECIPE_DST ? 1 : -1;
        recipe->operand[role] = (struct wpk_recipe_operand){
            .tensor = tensor, .rank = tensor >= 0, .extent = {8}, .stride = {1}};
    }
    add_file(scene, WPK_CHOICE_PLAIN, "plain.so");
    struct wpk_kernel *kernel = expect(scene, 1, "plain", "0 (vendor): ");
    compute(kernel);
    wpk_kernel_close(kernel);
    snprintf(scene->choice.chain[0].provider, WPK_CHOICE_TEXT_MAX, "acme");
    wpk_kernel_close(expect(scene, 1, "plain", "acme"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(takes_the_best_in_the_askers_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(positions_and_canonical_names_are_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_changed_file_is_passed_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_missing_file_is_passed_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_operators_kernel_is_passed_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unknown_tensors_are_passed_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_wrong_result_is_passed_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_wrong_second_output_is_passed_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_device_that_lacks_something_gets_the_plain_one, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(unsigned_and_changed_choices_are_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(libraries_that_are_not_there_are_passed_over, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
