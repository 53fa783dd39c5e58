/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/account.h"

#include "coordinator/state/owner.h"
#include "coordinator/state/table.h"
#include "coordinator/state/timing_class.h"

#include <stdlib.h>

struct wpk_account *wpk_account_get(struct wpk_timing_class *timing, struct wpk_owner *owner)
{
    struct wpk_account *account = wpk_table_get(&timing->accounts, owner->number);
    if (account == NULL) {
        account = calloc(1, sizeof *account);
        WPK_ASSERT(account != NULL);
        account->owner = owner;
        account->timing = timing;
        wpk_table_put(&timing->accounts, owner->number, account);
    }
    return account;
}

void wpk_account_forget(struct wpk_timing_class *timing)
{
    for (uint32_t i = 0; i < timing->accounts.capacity; i++) {
        free(timing->accounts.slots[i].value);
    }
    wpk_table_fini(&timing->accounts);
}
