/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/access/auth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SECRET "wpk_secret"

static void add_token(struct wpk_auth *auth, unsigned roles, uint64_t expires_at)
{
    struct wpk_auth_token token = {
        .id = "0123456789abcdef", .owner = "anna", .roles = roles, .expires_at = expires_at};
    wpk_crypto_sha256(SECRET, strlen(SECRET), token.hash);
    assert_int_equal(wpk_auth_set(auth, &token, 1), WPK_OK);
}

static void check(struct wpk_auth *auth, const char *token, unsigned roles, wpk_err want,
                  const char *why)
{
    struct wpk_hello hello = {.name = "w", .roles = roles};
    struct wpk_diag diag = {0};
    snprintf(hello.token, sizeof hello.token, "%s", token);
    struct wpk_identity identity;
    assert_int_equal(wpk_worker_auth_check(auth, &hello, 1000, &identity, &diag), want);
    bool lacks_role = strcmp(why, "build") == 0 || strcmp(why, "measure") == 0;
    bool known = want == WPK_OK || lacks_role;
    assert_string_equal(identity.owner, known ? "anna" : "");
    assert_int_equal(identity.roles != 0, known);
    if (strstr(diag.text, why) == NULL) {
        fail_msg("%s", diag.text);
    }
    assert_null(strstr(diag.text, SECRET)); /* it goes to the log */
}

static void who_is_let_in(void **state)
{
    (void)state;
    struct wpk_auth *auth;
    auth = wpk_auth_new();
    check(auth, "", WPK_WORKER_RUNS, WPK_EACCES, "--token-file");
    check(auth, SECRET, WPK_WORKER_RUNS, WPK_EACCES, "");
    add_token(auth, WPK_ROLE_MEASURE, 0);
    check(auth, SECRET, WPK_WORKER_RUNS, WPK_OK, "");
    check(auth, SECRET, WPK_WORKER_BUILDS, WPK_EACCES, "build");
    check(auth, SECRET, WPK_WORKER_ROLES_ALL, WPK_EACCES, "build");
    add_token(auth, WPK_ROLE_BUILD, 0);
    check(auth, SECRET, WPK_WORKER_BUILDS, WPK_OK, "");
    check(auth, SECRET, WPK_WORKER_ROLES_ALL, WPK_EACCES, "measure");
    add_token(auth, WPK_ROLE_ADMIN, 0);
    check(auth, SECRET, WPK_WORKER_ROLES_ALL, WPK_OK, "");
    add_token(auth, WPK_ROLE_ADMIN, 999);
    check(auth, SECRET, WPK_WORKER_ROLES_ALL, WPK_EACCES, "expired");
    add_token(auth, WPK_ROLE_READ | WPK_ROLE_SUBMIT, 0);
    check(auth, SECRET, WPK_WORKER_RUNS, WPK_EACCES, "measure");
    wpk_auth_free(auth);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(who_is_let_in)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
