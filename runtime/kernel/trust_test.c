/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel, its manifest and its signature: whole, and with any part of them changed. */
#include "runtime/kernel/trust.h"

#include "common/crypto.h"
#include "common/fs.h"
#include "runtime/wpk.h"
#include "tests/kernel_fixture.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

struct scene {
    struct wpk_kernel_fixture fixture;
    char manifest_path[128];
    char signature_path[128];
    uint8_t key[WPK_SIGN_KEY_SIZE];
    char public_key[WPK_SIGN_PUBLIC_HEX_SIZE];
    struct wpk_kernel_manifest manifest;
    struct wpk_buf text; /* the manifest as it was signed */
};

static void write_file(const char *path, const void *data, size_t size)
{
    assert_int_equal(wpk_fs_write(path, data, size, 0644, NULL), WPK_OK);
}

static void sign(struct scene *s)
{
    uint8_t signature[WPK_SIGNATURE_SIZE];
    char hex[WPK_SIGNATURE_HEX_SIZE];

    wpk_buf_reset(&s->text);
    assert_int_equal(wpk_kernel_manifest_encode(&s->manifest, &s->text), WPK_OK);
    write_file(s->manifest_path, s->text.data, s->text.size);
    wpk_crypto_sign(s->key, s->text.data, s->text.size, signature);
    wpk_crypto_hex(signature, sizeof(signature), hex);
    hex[WPK_SIGNATURE_HEX_SIZE - 1] = '\n';
    write_file(s->signature_path, hex, sizeof(hex));
}

static void make_key(struct scene *s)
{
    uint8_t seed[WPK_SIGN_SEED_SIZE];
    uint8_t public_key[WPK_SIGN_PUBLIC_SIZE];

    wpk_crypto_random(seed, sizeof(seed));
    wpk_crypto_sign_key(seed, s->key, public_key);
    wpk_crypto_hex(public_key, sizeof(public_key), s->public_key);
}

static int begin(void **state)
{
    static struct scene scene;
    static struct wpk_manifest manifest;
    struct scene *s = &scene;
    struct wpk_device here;
    struct wpk_buf object;

    memset(s, 0, sizeof(*s));
    wpk_kernel_fixture_manifest_bare(&manifest);
    s->manifest = (struct wpk_kernel_manifest){.layouts = "fixed",
                                               .threads = manifest.threads,
                                               .environment = "codegen=1",
                                               .provider = "halide-cpu",
                                               .median_ns = 10,
                                               .created_wall_ns = 1000000};
    memcpy(s->manifest.fingerprint, manifest.fingerprint, WPK_ID_MAX);
    wpk_kernel_fixture_init(&s->fixture, &manifest, true);
    snprintf(s->manifest_path, sizeof(s->manifest_path), "%s.manifest", s->fixture.path);
    snprintf(s->signature_path, sizeof(s->signature_path), "%s.sig", s->fixture.path);
    assert_int_equal(wpk_device_probe(WPK_CPU_FLAGS_ALL, &here), WPK_OK);
    wpk_device_class(&here, s->manifest.device, sizeof(s->manifest.device));
    s->manifest.accuracy = WPK_ACCURACY_STANDARD;
    assert_int_equal(wpk_seal_read(s->fixture.path, &object, NULL), WPK_OK);
    wpk_crypto_sha256_hex(object.data, object.size, s->manifest.artifact);
    wpk_buf_fini(&object);
    make_key(s);
    sign(s);
    *state = s;
    return 0;
}

static int end(void **state)
{
    struct scene *s = *state;

    (void)unlink(s->manifest_path);
    (void)unlink(s->signature_path);
    wpk_buf_fini(&s->text);
    wpk_kernel_fixture_fini(&s->fixture);
    return 0;
}

static wpk_err try_open(const struct scene *s, const char *public_key, bool any_model,
                        struct wpk_diag *diag)
{
    struct wpk_kernel *kernel = NULL;
    const struct wpk_open_options options = {.public_key = public_key, .any_model = any_model};

    wpk_err err = wpk_kernel_open(s->fixture.path, &options, &kernel, diag);
    wpk_kernel_close(kernel);
    return err;
}

static int open_files(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");

    assert_non_null(directory);
    while (readdir(directory) != NULL) {
        count++;
    }
    (void)closedir(directory);
    return count;
}

/* Twice at once, and run: each is loaded from memory of its own. */
static void what_is_signed_runs(void **state)
{
    const struct scene *s = *state;
    const struct wpk_open_options options = {.public_key = s->public_key};
    struct wpk_kernel *kernels[2] = {NULL, NULL};
    struct wpk_context *context = NULL;
    int before = open_files();

    assert_int_equal(wpk_context_new(&(struct wpk_context_options){.threads = 1}, &context),
                     WPK_OK);
    for (int i = 0; i < 2; i++) {
        float x[16] = {41 + (float)i}, y[16] = {0};
        const struct wpk_tensor_data in = {"X", x, 0}, out = {"Y", y, 0};
        struct wpk_tensor_data input = in, output = out;
        assert_int_equal(wpk_kernel_open(s->fixture.path, &options, &kernels[i], NULL), WPK_OK);
        input.size = (size_t)wpk_tensor_type_bytes(&wpk_kernel_input(kernels[i], 0)->type);
        output.size = (size_t)wpk_tensor_type_bytes(&wpk_kernel_output(kernels[i], 0)->type);
        assert_true(input.size <= sizeof(x));
        assert_int_equal(wpk_kernel_prepare(kernels[i], NULL, 0, NULL), WPK_OK);
        assert_int_equal(wpk_kernel_run(kernels[i], context, &input, 1, &output, 1), WPK_OK);
        assert_true(y[0] == x[0]);
    }
    wpk_kernel_close(kernels[0]);
    wpk_kernel_close(kernels[1]);
    wpk_context_free(context);
    assert_int_equal(open_files(), before);
}

static void a_changed_manifest_is_refused(void **state)
{
    struct scene *s = *state;
    struct wpk_diag diag = {0};

    for (size_t at = 0; at < s->text.size; at += 7) {
        s->text.data[at] ^= 1;
        write_file(s->manifest_path, s->text.data, s->text.size);
        assert_int_equal(try_open(s, s->public_key, false, NULL), WPK_EACCES);
        s->text.data[at] ^= 1;
    }
    write_file(s->manifest_path, s->text.data, s->text.size - 1);
    assert_int_equal(try_open(s, s->public_key, false, &diag), WPK_EACCES);
    assert_non_null(strstr(diag.text, "not signed by the key"));
    write_file(s->manifest_path, s->text.data, s->text.size);
    assert_int_equal(try_open(s, s->public_key, false, NULL), WPK_OK);
}

static void a_changed_signature_is_refused(void **state)
{
    struct scene *s = *state;
    struct wpk_buf signature = {0};

    assert_int_equal(wpk_fs_read(s->signature_path, 4096, &signature, NULL), WPK_OK);
    for (size_t at = 0; at + 1 < signature.size; at += 5) {
        char was = signature.data[at];
        signature.data[at] = was == '0' ? '1' : '0';
        write_file(s->signature_path, signature.data, signature.size);
        assert_int_equal(try_open(s, s->public_key, false, NULL), WPK_EACCES);
        signature.data[at] = was;
    }
    static const char *const texts[] = {"", "\n", "00", "none"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        write_file(s->signature_path, texts[i], strlen(texts[i]));
        assert_int_equal(try_open(s, s->public_key, false, NULL), WPK_EACCES);
    }
    wpk_buf_append_text(&signature, "0123");
    write_file(s->signature_path, signature.data, signature.size);
    assert_int_equal(try_open(s, s->public_key, false, NULL), WPK_EACCES);
    wpk_buf_fini(&signature);
}

/* A whole, well-sealed kernel, but another one than was signed. */
static void another_object_is_refused(void **state)
{
    struct scene *s = *state;
    struct wpk_buf object;
    struct wpk_diag diag = {0};

    assert_int_equal(wpk_seal_read(s->fixture.path, &object, NULL), WPK_OK);
    wpk_buf_append_text(&object, "more");
    write_file(s->fixture.path, object.data, object.size);
    assert_int_equal(try_open(s, s->public_key, false, NULL), WPK_ECORRUPT); /* its seal */
    assert_int_equal(wpk_seal_write(s->fixture.path, NULL), WPK_OK);
    assert_int_equal(try_open(s, s->public_key, false, &diag), WPK_ECORRUPT);
    assert_non_null(strstr(diag.text, "not the object"));
    assert_int_equal(try_open(s, NULL, false, NULL), WPK_ECORRUPT); /* without a key too */
    (void)unlink(s->manifest_path);
    assert_int_equal(try_open(s, NULL, false, NULL), WPK_OK);
    wpk_buf_fini(&object);
}

static void other_keys_are_refused(void **state)
{
    struct scene *s = *state;
    struct scene other;

    make_key(&other);
    assert_int_equal(try_open(s, other.public_key, false, NULL), WPK_EACCES);
    assert_int_equal(try_open(s, "00", false, NULL), WPK_EINVAL);
    assert_int_equal(try_open(s, "", false, NULL), WPK_EINVAL);
    assert_int_equal(try_open(s, NULL, false, NULL), WPK_OK);
}

static void unsigned_kernels_are_refused(void **state)
{
    struct scene *s = *state;
    struct wpk_diag diag = {0};

    (void)unlink(s->signature_path);
    assert_int_equal(try_open(s, s->public_key, false, &diag), WPK_EACCES);
    assert_non_null(strstr(diag.text, ".sig"));
    (void)unlink(s->manifest_path);
    diag.text[0] = '\0';
    assert_int_equal(try_open(s, s->public_key, false, &diag), WPK_EACCES);
    assert_non_null(strstr(diag.text, ".manifest"));
    assert_int_equal(try_open(s, NULL, false, NULL), WPK_OK);
}

static void another_device_is_asked_for(void **state)
{
    struct scene *s = *state;
    struct wpk_diag diag = {0};

    snprintf(s->manifest.device, sizeof(s->manifest.device), "cpu/Some Other/sse41");
    sign(s);
    assert_int_equal(try_open(s, s->public_key, false, &diag), WPK_EMISMATCH);
    assert_non_null(strstr(diag.text, "Some Other"));
    assert_int_equal(try_open(s, s->public_key, true, NULL), WPK_OK);
    assert_int_equal(try_open(s, NULL, false, NULL), WPK_OK);
}

/* Signed, but what is signed and what lies in the object contradict. */
static void another_operator_is_refused(void **state)
{
    struct scene *s = *state;

    s->manifest.fingerprint[0] = s->manifest.fingerprint[0] == '0' ? '1' : '0';
    sign(s);
    assert_int_equal(try_open(s, s->public_key, false, NULL), WPK_ECORRUPT);
    assert_int_equal(try_open(s, NULL, false, NULL), WPK_ECORRUPT);
}

/* The bytes that were checked are those that run: memory does not change with the file. */
static void what_is_frozen_stays(void **state)
{
    (void)state;
    struct wpk_buf object = {0}, back = {0};
    char path[WPK_TRUST_PATH_MAX];
    int fd = -1;

    wpk_buf_append_text(&object, "the bytes that were checked");
    assert_int_equal(wpk_trust_freeze(&object, &fd, path, NULL), WPK_OK);
    assert_int_equal(write(fd, "x", 1), -1);
    assert_int_equal(pwrite(fd, "x", 1, 0), -1);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(wpk_fs_read(path, 4096, &back, NULL), WPK_OK);
    assert_string_equal(wpk_buf_text(&back), wpk_buf_text(&object));
    (void)close(fd);
    wpk_buf_fini(&object);
    wpk_buf_fini(&back);
}

/* The machine's failure is no fault of the kernel's. */
static void a_kernel_that_cannot_be_kept_in_memory(void **state)
{
    const struct scene *s = *state;
    struct wpk_diag diag = {0};
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {1, before.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    wpk_err err = try_open(s, s->public_key, false, &diag);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(err, WPK_ESYSTEM);
    assert_non_null(strstr(diag.text, "cannot keep the kernel in memory: File too large"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_signed_runs, begin, end),
        cmocka_unit_test_setup_teardown(a_changed_manifest_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(a_changed_signature_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(another_object_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(other_keys_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(unsigned_kernels_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(another_device_is_asked_for, begin, end),
        cmocka_unit_test_setup_teardown(another_operator_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(a_kernel_that_cannot_be_kept_in_memory, begin, end),
        cmocka_unit_test(what_is_frozen_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
