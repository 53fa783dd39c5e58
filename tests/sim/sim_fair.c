/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/sim_fair.h"

#include "coordinator/state/account.h"
#include "coordinator/state/claim.h"
#include "coordinator/state/event.h"
#include "coordinator/state/fair.h"
#include "coordinator/state/final.h"
#include "coordinator/state/job.h"
#include "coordinator/state/lease.h"
#include "coordinator/state/owner.h"
#include "coordinator/state/search.h"
#include "coordinator/state/state.h"
#include "coordinator/state/table.h"
#include "coordinator/state/text.h"
#include "coordinator/state/timing_class.h"
#include "coordinator/state/worker.h"
#include "coordinator/state/worker_class.h"
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#define ACCOUNTS_MAX 64
#define SEARCHES_MAX 1024
#define GRANTS_MAX 16384
#define WINDOW 20
#define ALL (-1)
#define ONE (-2)
#define ROUNDING_NS 100000 /* of divisions by weights and among owners, of a run */

/* An owner's part in the time of a class's devices, by weight. */
struct account {
    char timing[WPK_TIMING_CLASS_TEXT_MAX];
    char owner[WPK_JOB_TEXT_MAX];
    double share_ns;
    double level_ns; /* of the class: the largest share with which one was given a lease */
};

/* The shortest and longest of what a search's leases took. */
struct range {
    uint64_t handle;
    uint64_t low_ns;
    uint64_t high_ns;
};

struct grant {
    uint64_t lease;
    int account;     /* that pays; ALL, ONE: it is no grant, but the end of windows */
    int anew;        /* ONE: of the windows of this account, which had been idle */
    bool shared;     /* several owners paid for it */
    uint64_t rivals; /* the accounts, as bits, that had work for its worker, with itself */
    uint64_t given_ns;
    uint64_t settled_ns;           /* when; 0: not yet */
    double estimate_ns;            /* by weight, like */
    double actual_ns;              /* 0 until it is settled */
    double share_ns[ACCOUNTS_MAX]; /* of all accounts, before it */
};

static struct {
    struct wpk_sim *sim; /* NULL: nobody is watched */
    struct account accounts[ACCOUNTS_MAX];
    int account_count;
    struct range ranges[SEARCHES_MAX];
    int range_count;
    struct grant *grants; /* owned; [grant_count], in their order */
    int grant_count;
    int grant_first;     /* of this coordinator's: leases are numbered anew in the next */
    uint64_t charged_ns; /* in all */
    uint64_t windows;
} book;

/* ---- the watched functions: their calls come here, and go on */

wpk_err watched_new(uint64_t job_number_next, struct wpk_coordinator **out) //
    __asm__("__wrap_wpk_coordinator_new");
wpk_err real_new(uint64_t job_number_next, struct wpk_coordinator **out) //
    __asm__("__real_wpk_coordinator_new");
void watched_charge(struct wpk_coordinator *c, struct wpk_lease *lease) //
    __asm__("__wrap_wpk_fair_charge");
void real_charge(struct wpk_coordinator *c, struct wpk_lease *lease) //
    __asm__("__real_wpk_fair_charge");
void watched_settle(struct wpk_coordinator *c, struct wpk_lease *lease, uint64_t device_ns) //
    __asm__("__wrap_wpk_fair_settle");
void real_settle(struct wpk_coordinator *c, struct wpk_lease *lease, uint64_t device_ns) //
    __asm__("__real_wpk_fair_settle");
void watched_ready(struct wpk_account *account, const struct wpk_search *search) //
    __asm__("__wrap_wpk_fair_ready");
void real_ready(struct wpk_account *account, const struct wpk_search *search) //
    __asm__("__real_wpk_fair_ready");
void watched_forget(struct wpk_timing_class *timing) __asm__("__wrap_wpk_account_forget");
void real_forget(struct wpk_timing_class *timing) __asm__("__real_wpk_account_forget");

/* ---- the book */

static struct grant *put_grant(void)
{
    WPK_SIM_CHECK(book.sim, book.grant_count < GRANTS_MAX, "too many leases");
    struct grant *grant = &book.grants[book.grant_count++];
    memset(grant, 0, sizeof *grant);
    return grant;
}

/* The class, or all if it is NULL, has no past; no window goes over this. */
static void begin_anew(const char *timing)
{
    for (int i = 0; i < book.account_count; i++) {
        if (timing == NULL || strcmp(book.accounts[i].timing, timing) == 0) {
            book.accounts[i].share_ns = 0;
            book.accounts[i].level_ns = 0;
        }
    }
    put_grant()->account = ALL;
}

/* Nothing of a coordinator that is gone counts: its leases were in memory only. */
wpk_err watched_new(uint64_t job_number_next, struct wpk_coordinator **out)
{
    book.range_count = 0;
    wpk_sim_level_begin();
    if (book.sim != NULL) {
        begin_anew(NULL);
    }
    book.grant_first = book.grant_count;
    return real_new(job_number_next, out);
}

double wpk_sim_fair_level(const struct wpk_timing_class *timing)
{
    for (int i = 0; i < book.account_count; i++) {
        if (strcmp(book.accounts[i].timing, timing->text) == 0) {
            return book.accounts[i].level_ns;
        }
    }
    return 0;
}

static void set_level(const struct wpk_timing_class *timing, double share_ns)
{
    for (int i = 0; i < book.account_count; i++) {
        struct account *account = &book.accounts[i];
        if (strcmp(account->timing, timing->text) == 0 && account->level_ns < share_ns) {
            account->level_ns = share_ns;
        }
    }
}

static int account_of(const struct wpk_timing_class *timing, const struct wpk_owner *owner)
{
    for (int i = 0; i < book.account_count; i++) {
        if (strcmp(book.accounts[i].owner, owner->name) == 0 &&
            strcmp(book.accounts[i].timing, timing->text) == 0) {
            return i;
        }
    }
    WPK_SIM_CHECK(book.sim, book.account_count < ACCOUNTS_MAX, "too many accounts");
    struct account *account = &book.accounts[book.account_count];
    memset(account, 0, sizeof *account);
    account->level_ns = wpk_sim_fair_level(timing);
    memcpy(account->owner, owner->name, sizeof account->owner);
    memcpy(account->timing, timing->text, sizeof account->timing);
    return book.account_count++;
}

/* The coordinator's share is the book's. Who comes late starts higher: that alone the book does not
 * know by itself, but it is not higher than anybody was who has been served. */
static double share_of(int index, const struct wpk_account *account)
{
    struct account *own = &book.accounts[index];
    double share_ns = (double)account->share_ns;
    WPK_SIM_CHECK(book.sim, share_ns > own->share_ns - ROUNDING_NS,
                  "%s has %.0f ns, and was charged %.0f", own->owner, share_ns, own->share_ns);
    if (share_ns > own->share_ns + ROUNDING_NS) {
        WPK_SIM_CHECK(book.sim, share_ns <= own->level_ns + ROUNDING_NS,
                      "%s has %.0f ns, was charged %.0f, and nobody was served with more than %.0f",
                      own->owner, share_ns, own->share_ns, own->level_ns);
        own->share_ns = share_ns;
        struct grant *end = put_grant();
        end->account = ONE;
        end->anew = index;
    }
    return own->share_ns;
}

static struct range *range_of(const struct wpk_search *search)
{
    for (int i = 0; i < book.range_count; i++) {
        if (book.ranges[i].handle == search->handle) {
            return &book.ranges[i];
        }
    }
    WPK_SIM_CHECK(book.sim, book.range_count < SEARCHES_MAX, "too many searches");
    book.ranges[book.range_count] = (struct range){.handle = search->handle};
    return &book.ranges[book.range_count++];
}

static struct grant *find_grant(uint64_t lease)
{
    for (int i = book.grant_count; i > book.grant_first; i--) {
        if (book.grants[i - 1].lease == lease) {
            return &book.grants[i - 1];
        }
    }
    return NULL;
}

/* ---- a lease is given */

/* He starts from where those are whom the place serves: nobody saves up. Both are rounded. */
static void check_credit(const struct wpk_account *account, const void *place)
{
    double level_ns = wpk_sim_level_of(place);
    WPK_SIM_CHECK(book.sim, (double)account->share_ns >= level_ns - 2 * ROUNDING_NS,
                  "%s comes with %.3f s, when somebody with %.3f s was served",
                  account->owner->name, (double)account->share_ns / 1e9, level_ns / 1e9);
}

static bool has_work_for(const struct wpk_owner_queue *owner_queue, const struct wpk_worker *worker)
{
    for (uint32_t i = 0; i < owner_queue->ready_count; i++) {
        if (!wpk_final_excludes(owner_queue->ready[i]->search, worker)) {
            return true;
        }
    }
    return false;
}

/* It was not chosen: the worker says that it has it, after wpkd or its session was away. */
static bool is_told(const struct wpk_coordinator *c, const struct wpk_lease *lease)
{
    return c->event->kind == WPK_EVENT_MESSAGE &&
           c->event->message->session == lease->worker->session && c->polled != lease->worker;
}

/* Of those for whom the worker could work, nobody is further behind than he. */
static void check_choice(const struct wpk_lease *lease, struct grant *grant)
{
    const struct wpk_worker_class *worker_class = lease->worker->worker_class;
    double own_ns = book.accounts[grant->account].share_ns;
    for (const struct wpk_link *link = worker_class->links; link != NULL;
         link = link->worker_class_next) {
        for (uint32_t i = 0; i < link->queue->ready_count; i++) {
            const struct wpk_owner_queue *owner_queue = link->queue->ready[i];
            if (!has_work_for(owner_queue, lease->worker)) {
                continue;
            }
            int rival = account_of(worker_class->timing, owner_queue->account->owner);
            double rival_ns = share_of(rival, wpk_fair_payer(worker_class, owner_queue->account));
            grant->rivals |= UINT64_C(1) << rival;
            WPK_SIM_CHECK(book.sim, own_ns <= rival_ns + ROUNDING_NS,
                          "%s has had %.3f s, %s %.3f s, and a lease is given for %s",
                          book.accounts[grant->account].owner, own_ns / 1e9,
                          book.accounts[rival].owner, rival_ns / 1e9,
                          book.accounts[grant->account].owner);
        }
    }
}

static void check_estimate(const struct wpk_lease *lease)
{
    const struct range *range = range_of(lease->search);
    uint64_t low_ns = range->low_ns != 0 ? range->low_ns : WPK_ESTIMATE_NS;
    uint64_t high_ns = range->low_ns != 0 ? range->high_ns : WPK_ESTIMATE_NS;
    WPK_SIM_CHECK(book.sim, lease->estimate_ns >= low_ns && lease->estimate_ns <= high_ns,
                  "%llu ns are estimated, leases took %llu to %llu",
                  (unsigned long long)lease->estimate_ns, (unsigned long long)low_ns,
                  (unsigned long long)high_ns);
}

void watched_charge(struct wpk_coordinator *c, struct wpk_lease *lease)
{
    if (book.sim == NULL || lease->account == NULL) {
        real_charge(c, lease);
        return;
    }
    const struct wpk_worker_class *worker_class = lease->worker->worker_class;
    const struct wpk_account *payer = wpk_fair_payer(worker_class, lease->account);
    int index = account_of(worker_class->timing, lease->account->owner);
    double share_ns = share_of(index, payer);
    struct grant *grant = put_grant();
    grant->lease = lease->number;
    grant->given_ns = c->event->now_ns;
    grant->account = index;
    if (payer->ready_count == 0) {
        check_credit(payer, worker_class); /* in a builder's class nobody says when there is work */
    }
    set_level(worker_class->timing, share_ns);
    wpk_sim_level_served(worker_class, share_ns);
    if (!is_told(c, lease)) {
        check_choice(lease, grant);
        wpk_sim_check_rank(book.sim, c, lease);
    }
    for (int i = 0; i < book.account_count; i++) {
        grant->share_ns[i] = book.accounts[i].share_ns;
    }
    real_charge(c, lease);
    check_estimate(lease);
    grant->estimate_ns = (double)lease->estimate_ns / lease->account->owner->weight;
    book.accounts[grant->account].share_ns += grant->estimate_ns;
}

/* ---- a lease is over */

/* The owners for whom the search is worked on, each once. */
static uint32_t owners_of(const struct wpk_search *search, const struct wpk_owner **out,
                          uint32_t max)
{
    uint32_t count = 0;
    for (const struct wpk_job_op_state *op = search->ops; op != NULL; op = op->next) {
        bool found = op->claims[0] == NULL;
        for (uint32_t i = 0; i < count; i++) {
            found = found || out[i] == op->job->account;
        }
        if (!found && count < max) {
            out[count++] = op->job->account;
        }
    }
    return count;
}

/* Who started from where the others are since his last lease does so before this is charged. */
static void look_at_payers(const struct wpk_lease *lease)
{
    const struct wpk_timing_class *timing = lease->worker->worker_class->timing;
    const struct wpk_owner *owners[ACCOUNTS_MAX];
    uint32_t count = owners_of(lease->search, owners, ACCOUNTS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        const struct wpk_account *account = wpk_table_get(&timing->accounts, owners[i]->number);
        if (account != NULL) {
            share_of(account_of(timing, owners[i]), account);
        }
    }
    if (lease->account != NULL) {
        share_of(account_of(lease->account->timing, lease->account->owner), lease->account);
    }
}

/* Its time goes to them, in equal parts. */
static uint32_t enter(const struct wpk_lease *lease, uint64_t device_ns)
{
    const struct wpk_timing_class *timing = lease->worker->worker_class->timing;
    const struct wpk_owner *owners[ACCOUNTS_MAX];
    uint32_t count = owners_of(lease->search, owners, ACCOUNTS_MAX);
    if (count == 0 && lease->account != NULL) {
        owners[count++] = lease->account->owner;
    }
    for (uint32_t i = 0; i < count; i++) {
        book.accounts[account_of(timing, owners[i])].share_ns +=
            (double)device_ns / count / owners[i]->weight;
    }
    struct range *range = range_of(lease->search);
    range->low_ns = range->low_ns == 0 || device_ns < range->low_ns ? device_ns : range->low_ns;
    range->high_ns = device_ns > range->high_ns ? device_ns : range->high_ns;
    book.charged_ns += device_ns;
    return count;
}

void watched_settle(struct wpk_coordinator *c, struct wpk_lease *lease, uint64_t device_ns)
{
    if (book.sim == NULL) {
        real_settle(c, lease, device_ns);
        return;
    }
    look_at_payers(lease);
    struct grant *grant = find_grant(lease->number);
    if (grant != NULL) {
        grant->settled_ns = c->event->now_ns;
        grant->actual_ns = (double)device_ns / lease->account->owner->weight;
        book.accounts[grant->account].share_ns -= grant->estimate_ns;
    }
    uint32_t payers = device_ns > 0 ? enter(lease, device_ns) : 0;
    if (grant != NULL) {
        grant->shared = payers > 1;
    }
    uint64_t run_ns = book.sim->clock.now_ns - book.sim->began_ns;
    WPK_SIM_CHECK(book.sim, book.charged_ns <= run_ns * (uint64_t)book.sim->worker_count,
                  "%llu ns were charged in %llu ns", (unsigned long long)book.charged_ns,
                  (unsigned long long)run_ns);
    real_settle(c, lease, device_ns);
}

void watched_forget(struct wpk_timing_class *timing)
{
    if (book.sim != NULL) {
        begin_anew(timing->text);
    }
    real_forget(timing);
}

/* ---- work comes */

void watched_ready(struct wpk_account *account, const struct wpk_search *search)
{
    real_ready(account, search);
    if (book.sim == NULL || account->ready_count > 1) {
        return;
    }
    share_of(account_of(account->timing, account->owner), account);
    for (const struct wpk_claim *claim = search->claims; claim != NULL;
         claim = claim->search_next) {
        if (claim->owner_queue->account == account) {
            check_credit(account, claim->owner_queue->queue);
        }
    }
}

/* ---- windows */

/* What the lease took more than was thought, or less. */
static double surprise_ns(const struct grant *grant)
{
    double ns = grant->actual_ns - grant->estimate_ns;
    if (grant->shared) {
        return grant->actual_ns + grant->estimate_ns; /* it was charged to others, too */
    }
    return ns < 0 ? -ns : ns;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* The leases `window`, in their order, of which each went to `a` or `b`, who wanted them all. */
static void check_window(const struct grant *const *window, int a, int b)
{
    double ahead_ns = 0; /* a before b */
    double forgiven_ns = 0;
    double longest_ns[2] = {0};
    const struct grant *first = window[0];
    for (const struct grant *grant = first; grant > book.grants && grant[-1].account != ALL;) {
        grant--;
        bool in_flight = grant->settled_ns == 0 || grant->settled_ns >= first->given_ns;
        forgiven_ns += in_flight ? surprise_ns(grant) : 0;
    }
    for (int i = 0; i < WINDOW; i++) {
        bool is_a = window[i]->account == a;
        ahead_ns += is_a ? window[i]->actual_ns : -window[i]->actual_ns;
        forgiven_ns += surprise_ns(window[i]);
        longest_ns[is_a] =
            larger(longest_ns[is_a], larger(window[i]->actual_ns, window[i]->estimate_ns));
    }
    /* What came before is made up for: by as much as it was. */
    double before_ns = first->share_ns[a] - first->share_ns[b];
    before_ns = before_ns < 0 ? -before_ns : before_ns;
    double allowed_ns = larger(longest_ns[0], longest_ns[1]) +
                        larger(before_ns, larger(longest_ns[0], longest_ns[1])) + forgiven_ns;
    ahead_ns = ahead_ns < 0 ? -ahead_ns : ahead_ns;
    WPK_SIM_CHECK(book.sim, ahead_ns <= allowed_ns + ROUNDING_NS,
                  "%d leases from %llu on: %s and %s are %.3f s apart, %.3f s are allowed", WINDOW,
                  (unsigned long long)first->lease, book.accounts[a].owner, book.accounts[b].owner,
                  ahead_ns / 1e9, allowed_ns / 1e9);
    book.windows++;
}

static void check_pair(int a, int b)
{
    const uint64_t both = UINT64_C(1) << a | UINT64_C(1) << b;
    const struct grant *window[WINDOW];
    int count = 0;
    for (int i = 0; i < book.grant_count; i++) {
        const struct grant *grant = &book.grants[i];
        bool of_others = grant->account == ONE ? grant->anew != a && grant->anew != b
                                               : grant->account != a && grant->account != b;
        if (grant->account != ALL && !grant->shared && of_others) {
            continue;
        }
        if (grant->account < 0 || grant->shared || (grant->rivals & both) != both) {
            count = 0;
            continue;
        }
        if (count == WINDOW) {
            memmove(window, window + 1, (WINDOW - 1) * sizeof window[0]);
            count--;
        }
        window[count++] = grant;
        if (count == WINDOW) {
            check_window(window, a, b);
        }
    }
}

void wpk_sim_fair_begin(struct wpk_sim *sim)
{
    free(book.grants);
    uint64_t windows = book.windows;
    memset(&book, 0, sizeof book);
    book.sim = sim;
    book.windows = windows;
    book.grants = calloc(GRANTS_MAX, sizeof *book.grants);
    WPK_ASSERT(book.grants != NULL);
}

void wpk_sim_fair_end(struct wpk_sim *sim)
{
    WPK_ASSERT(book.sim == sim);
    for (int a = 0; a < book.account_count; a++) {
        for (int b = a + 1; b < book.account_count; b++) {
            check_pair(a, b);
        }
    }
    book.sim = NULL;
    free(book.grants);
    book.grants = NULL;
}

uint64_t wpk_sim_fair_windows(void)
{
    return book.windows;
}
