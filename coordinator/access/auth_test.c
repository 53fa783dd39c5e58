/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/access/auth.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TOKENS 1000

static struct wpk_auth_token make_token(const char *secret, const char *owner, unsigned roles)
{
    struct wpk_auth_token token = {.roles = roles};
    snprintf(token.owner, sizeof token.owner, "%s", owner);
    snprintf(token.id, sizeof token.id, "%016x", (unsigned)strlen(secret));
    wpk_crypto_sha256(secret, strlen(secret), token.hash);
    return token;
}

static void expect_refusal(struct wpk_auth *auth, const char *secret, uint64_t wall_ns,
                           const char *reason)
{
    struct wpk_identity identity = {.roles = 99};
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_auth_check(auth, secret, wall_ns, &identity, &diag), WPK_EACCES);
    assert_string_equal(diag.text, reason);
    assert_int_equal(identity.roles, 99); /* nothing was written */
}

static void knows_whose_a_secret_is(void **state)
{
    struct wpk_auth *auth = NULL;
    struct wpk_identity identity = {.peer = "unix"};
    char endless[WPK_AUTH_SECRET_MAX + 2];
    (void)state;
    auth = wpk_auth_new();
    expect_refusal(auth, "secret", 0, "there is no such token");
    struct wpk_auth_token tokens[] = {
        make_token("secret", "anna", WPK_ROLE_READ | WPK_ROLE_SUBMIT),
        make_token("short-lived", "bert", WPK_ROLE_READ),
        make_token("taken away", "carl", WPK_ROLE_ADMIN),
    };
    tokens[1].expires_at = 1000;
    tokens[2].revoked = true;
    assert_int_equal(wpk_auth_set(auth, tokens, 3), WPK_OK);
    assert_int_equal(wpk_auth_check(auth, "secret", 5000, &identity, NULL), WPK_OK);
    assert_string_equal(identity.owner, "anna");
    assert_string_equal(identity.token_id, tokens[0].id);
    assert_string_equal(identity.peer, "unix");
    assert_int_equal(identity.roles, WPK_ROLE_READ | WPK_ROLE_SUBMIT);
    assert_int_equal(wpk_auth_check(auth, "short-lived", 999, &identity, NULL), WPK_OK);
    expect_refusal(auth, "short-lived", 1000, "the token has expired");
    expect_refusal(auth, "taken away", 0, "the token was revoked");
    expect_refusal(auth, "secre", 0, "there is no such token");
    expect_refusal(auth, "", 0, "that is no token");
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    expect_refusal(auth, endless, 0, "that is no token");
    assert_int_equal(wpk_auth_set(auth, tokens + 1, 2), WPK_OK);
    expect_refusal(auth, "secret", 0, "there is no such token");
    wpk_auth_free(auth);
}

static void a_bad_table_changes_nothing(void **state)
{
    struct wpk_auth *auth = NULL;
    struct wpk_identity identity;
    (void)state;
    auth = wpk_auth_new();
    struct wpk_auth_token tokens[] = {make_token("a", "anna", 1), make_token("a", "bert", 1)};
    assert_int_equal(wpk_auth_set(auth, tokens, 1), WPK_OK);
    assert_int_equal(wpk_auth_set(auth, tokens, 2), WPK_EEXIST);
    assert_int_equal(wpk_auth_set(auth, tokens, WPK_AUTH_TOKENS_MAX + 1), WPK_ENOSPC);
    assert_int_equal(wpk_auth_check(auth, "a", 0, &identity, NULL), WPK_OK);
    wpk_auth_free(auth);
    wpk_auth_free(NULL);
}

static void many_tokens(void **state)
{
    static struct wpk_auth_token tokens[TOKENS];
    struct wpk_auth *auth = NULL;
    struct wpk_identity identity;
    char secret[32];
    (void)state;
    for (int i = 0; i < TOKENS; i++) {
        char owner[32];
        snprintf(secret, sizeof secret, "s%d", i);
        snprintf(owner, sizeof owner, "o%d", i);
        tokens[i] = make_token(secret, owner, WPK_ROLE_READ);
    }
    auth = wpk_auth_new();
    assert_int_equal(wpk_auth_set(auth, tokens, TOKENS), WPK_OK);
    for (int i = 0; i < TOKENS; i++) {
        snprintf(secret, sizeof secret, "s%d", i);
        assert_int_equal(wpk_auth_check(auth, secret, 0, &identity, NULL), WPK_OK);
        assert_string_equal(identity.owner, tokens[i].owner);
    }
    wpk_auth_free(auth);
}

struct race {
    struct wpk_auth *auth;
    atomic_bool ended;
    atomic_int mixed; /* identities of no table */
};

static void *check_on(void *user)
{
    struct race *race = user;
    while (!atomic_load(&race->ended)) {
        struct wpk_identity identity = {0};
        wpk_err err = wpk_auth_check(race->auth, "secret", 0, &identity, NULL);
        bool whole = err == WPK_OK &&
                     strcmp(identity.owner, identity.roles == WPK_ROLE_READ ? "anna" : "bert") == 0;
        atomic_fetch_add(&race->mixed, whole ? 0 : 1);
    }
    return NULL;
}

static void replaced_while_others_check(void **state)
{
    struct race race = {0};
    pthread_t threads[2];
    (void)state;
    struct wpk_auth_token anna = make_token("secret", "anna", WPK_ROLE_READ);
    struct wpk_auth_token bert = make_token("secret", "bert", WPK_ROLE_ADMIN);
    race.auth = wpk_auth_new();
    assert_int_equal(wpk_auth_set(race.auth, &anna, 1), WPK_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, check_on, &race), 0);
    }
    for (int i = 0; i < 2000; i++) {
        assert_int_equal(wpk_auth_set(race.auth, i % 2 == 0 ? &bert : &anna, 1), WPK_OK);
    }
    atomic_store(&race.ended, true);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(atomic_load(&race.mixed), 0);
    wpk_auth_free(race.auth);
}

static void roles(void **state)
{
    unsigned roles = 99;
    char text[WPK_ROLES_TEXT_SIZE];
    struct wpk_diag diag = {0};
    (void)state;
    assert_int_equal(wpk_roles_parse("read,measure", &roles, NULL), WPK_OK);
    assert_int_equal(roles, WPK_ROLE_READ | WPK_ROLE_MEASURE);
    wpk_roles_print(roles, text);
    assert_string_equal(text, "read,measure");
    wpk_roles_print(WPK_ROLE_ALL, text);
    assert_string_equal(text, "read,submit,build,measure,admin");
    assert_int_equal(wpk_roles_parse(text, &roles, NULL), WPK_OK);
    assert_int_equal(roles, WPK_ROLE_ALL);
    assert_int_equal(wpk_roles_parse("", &roles, NULL), WPK_OK);
    assert_int_equal(roles, 0);
    assert_int_equal(wpk_roles_parse("read,rea", &roles, &diag), WPK_EPARSE);
    assert_string_equal(diag.text, "there is no role \"rea\"");
    assert_int_equal(wpk_roles_parse("read,", &roles, NULL), WPK_EPARSE);
    assert_int_equal(wpk_roles_parse(",read", &roles, NULL), WPK_EPARSE);
    struct wpk_identity reader = {.roles = WPK_ROLE_READ}, chief = {.roles = WPK_ROLE_ADMIN};
    memset(&diag, 0, sizeof diag);
    assert_true(wpk_identity_may(&reader, WPK_ROLE_READ, &diag));
    assert_string_equal(diag.text, "");
    assert_false(wpk_identity_may(&reader, WPK_ROLE_SUBMIT, &diag));
    assert_string_equal(diag.text, "this needs the role submit");
    assert_true(wpk_identity_may(&chief, WPK_ROLE_SUBMIT, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_whose_a_secret_is),
        cmocka_unit_test(a_bad_table_changes_nothing),
        cmocka_unit_test(many_tokens),
        cmocka_unit_test(replaced_while_others_check),
        cmocka_unit_test(roles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
