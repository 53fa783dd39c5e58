/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/http/http_policy.h"

#include "common/clock.h"
#include "common/json.h"
#include "common/metrics.h"

#include <stdio.h>
#include <string.h>

void wpk_http_policy_init(struct wpk_http_policy *policy, const struct wpk_http_options *options)
{
    *policy = (struct wpk_http_policy){
        .auth = options->auth, .refused = options->refused, .user = options->user};
    pthread_rwlock_init(&policy->names_lock, NULL);
    pthread_mutex_init(&policy->refusals_lock, NULL);
}

void wpk_http_policy_fini(struct wpk_http_policy *policy)
{
    pthread_rwlock_destroy(&policy->names_lock);
    pthread_mutex_destroy(&policy->refusals_lock);
}

/* ---- listeners and names */

wpk_err wpk_http_policy_check_listener(const struct wpk_http_policy *policy,
                                       const struct wpk_listen *listen,
                                       const struct wpk_http_listener *listener,
                                       struct wpk_diag *diag)
{
    const char *name = listen->address != NULL ? listen->address : "the socket passed on";
    bool tls = listen->certificate != NULL;
    if (tls != (listen->key != NULL)) {
        wpk_diag_set(diag, "%s: TLS takes a certificate and its key", name);
    } else if (tls && listener->local) {
        wpk_diag_set(diag, "%s: a Unix socket has no TLS", name);
    } else if (!listener->local && policy->auth == NULL) {
        wpk_diag_set(diag, "%s: TCP needs tokens, and there are none", name);
    } else if (!listener->local && !listener->loopback && !tls && !listen->insecure) {
        wpk_diag_set(diag,
                     "%s can be reached from elsewhere: it takes a certificate and its key, or "
                     "\"insecure\": true",
                     name);
    } else {
        return WPK_OK;
    }
    return WPK_EINVAL;
}

wpk_err wpk_http_policy_set_names(struct wpk_http_policy *policy, const char *const *names,
                                  uint32_t count, struct wpk_diag *diag)
{
    for (uint32_t i = 0; i < count; i++) {
        if (i == WPK_HTTP_HOSTS_MAX || strlen(names[i]) >= WPK_HTTP_HOST_SIZE) {
            return wpk_fail(diag, WPK_ERANGE,
                            "at most %d names of this host are taken, of %d bytes each",
                            WPK_HTTP_HOSTS_MAX, WPK_HTTP_HOST_SIZE - 1);
        }
    }
    pthread_rwlock_wrlock(&policy->names_lock);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(policy->names[i], sizeof policy->names[i], "%s", names[i]);
    }
    policy->name_count = count;
    pthread_rwlock_unlock(&policy->names_lock);
    return WPK_OK;
}

bool wpk_http_policy_host_allowed(struct wpk_http_policy *policy,
                                  const struct wpk_http_listener *listener, bool tls,
                                  const char *host)
{
    static const char *const loopback[] = {"localhost", "127.0.0.1", "[::1]"};
    if (listener->local) {
        return true;
    }
    if (host == NULL) {
        return false;
    }
    for (size_t i = 0; listener->loopback && i < sizeof loopback / sizeof loopback[0]; i++) {
        if (wpk_http_host_is(host, loopback[i])) {
            return true;
        }
    }
    pthread_rwlock_rdlock(&policy->names_lock);
    bool allowed = policy->name_count == 0 && (tls || !listener->loopback);
    for (uint32_t i = 0; i < policy->name_count && !allowed; i++) {
        allowed = wpk_http_host_is(host, policy->names[i]);
    }
    pthread_rwlock_unlock(&policy->names_lock);
    return allowed;
}

/* ---- credentials */

/* A flood of refusals is worth a few lines, not one each. */
static void tell_refusal(struct wpk_http_policy *policy, const char *peer, const char *reason,
                         uint64_t wall_ns)
{
    uint64_t untold = 0;
    pthread_mutex_lock(&policy->refusals_lock);
    if (policy->second != wall_ns / WPK_NS_PER_S) {
        policy->second = wall_ns / WPK_NS_PER_S;
        policy->told = 0;
    }
    bool tell = policy->refused != NULL && policy->told < WPK_HTTP_REFUSALS_MAX;
    if (tell) {
        policy->told++;
        untold = policy->untold;
        policy->untold = 0;
    } else {
        policy->untold++;
    }
    pthread_mutex_unlock(&policy->refusals_lock);
    if (tell) {
        policy->refused(policy->user, peer, reason, untold);
    }
}

wpk_err wpk_http_policy_identify(struct wpk_http_policy *policy, const char *authorization,
                                 const struct wpk_identity *local, uint64_t wall_ns,
                                 struct wpk_identity *out, struct wpk_diag *diag)
{
    if (authorization == NULL && local->roles != 0) {
        *out = *local;
        return WPK_OK;
    }
    struct wpk_diag reason = {0};
    const char *secret = authorization != NULL ? wpk_http_bearer(authorization) : NULL;
    wpk_err err = WPK_EACCES;
    if (secret != NULL && policy->auth != NULL) {
        err = wpk_auth_check(policy->auth, secret, wall_ns, out, &reason);
    } else {
        wpk_metric_add(WPK_COUNTER_DENIED, wpk_metric_value(WPK_LABEL_DENIAL, "missing"), 1);
        wpk_diag_set(&reason, authorization == NULL ? "a token is needed here"
                              : secret == NULL      ? "the scheme has to be Bearer"
                                                    : "there are no tokens here");
    }
    if (err == WPK_OK) {
        memcpy(out->peer, local->peer, sizeof out->peer);
        return WPK_OK;
    }
    tell_refusal(policy, local->peer, reason.text, wall_ns);
    wpk_diag_set(diag, "%s", reason.text);
    return err;
}

bool wpk_http_policy_has_cookie(struct wpk_http_policy *policy, const struct wpk_http_head *head,
                                const struct wpk_identity *local, uint64_t wall_ns,
                                struct wpk_identity *out)
{
    const char *header = head->field[WPK_HTTP_COOKIE];
    bool has = header != NULL && head->field[WPK_HTTP_AUTHORIZATION] == NULL &&
               policy->auth != NULL && wpk_auth_check_cookie(policy->auth, header, wall_ns, out);
    if (has) {
        memcpy(out->peer, local->peer, sizeof out->peer);
    }
    return has;
}

void wpk_http_policy_refuse_user(struct wpk_http_policy *policy, const char *name, uint64_t wall_ns)
{
    struct wpk_diag reason = {0};
    wpk_metric_add(WPK_COUNTER_DENIED, wpk_metric_value(WPK_LABEL_DENIAL, "user"), 1);
    wpk_diag_set(&reason, "the user %s is none of the peers", name);
    tell_refusal(policy, "unix", reason.text, wall_ns);
}

#define RETRY_S 1 /* to come again after what is not now; the store is probed as often */

void wpk_api_drop_body(struct wpk_api_answer *answer)
{
    wpk_buf_fini(&answer->body);
    if (answer->release != NULL) {
        answer->release(answer->owner);
        answer->release = NULL;
    }
}

void wpk_api_answer_fini(struct wpk_api_answer *answer)
{
    wpk_api_drop_body(answer);
    memset(answer, 0, sizeof *answer);
}

bool wpk_api_problem(struct wpk_api_answer *answer, int status, wpk_err err,
                     const struct wpk_diag *diag)
{
    char type[64];
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    snprintf(type, sizeof type, "urn:woodpecker:%s", wpk_err_name(err));
    wpk_json_put_text(w, "type", type);
    wpk_json_put_text(w, "title", wpk_err_text(err));
    wpk_json_put_int(w, "status", status);
    wpk_json_put_text(w, "detail", diag != NULL ? diag->text : wpk_err_text(err));
    if (diag != NULL && diag->field[0] != '\0') {
        wpk_json_put_text(w, "field", diag->field);
    }
    if (diag != NULL && diag->line > 0) {
        wpk_json_put_int(w, "line", diag->line);
        wpk_json_put_int(w, "column", diag->column);
    }
    wpk_api_drop_body(answer);
    answer->how = WPK_API_NOW;
    answer->status = status;
    answer->content_type = "application/problem+json";
    answer->location[0] = '\0';
    answer->etag[0] = '\0';
    answer->retry_after_s = status == 503 || status == 507 ? RETRY_S : 0;
    wpk_buf_reset(&answer->body);
    wpk_err printed = wpk_json_finish(w, false, &answer->body);
    WPK_ASSERT(printed == WPK_OK || printed == WPK_ENOMEM);
    return false;
}
