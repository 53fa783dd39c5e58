/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/account.h"

#include "coordinator/state/class.h"
#include "coordinator/state/owner.h"
#include "coordinator/state/table.h"

#include <stdlib.h>

struct wpk_account *wpk_account_get(struct wpk_class *kind, struct wpk_owner *owner)
{
    struct wpk_account *account = wpk_table_get(&kind->accounts, owner->number);
    if (account == NULL) {
        account = calloc(1, sizeof *account);
        WPK_ASSERT(account != NULL);
        account->owner = owner;
        account->kind = kind;
        wpk_table_put(&kind->accounts, owner->number, account);
    }
    return account;
}

void wpk_account_forget(struct wpk_class *kind)
{
    for (uint32_t i = 0; i < kind->accounts.capacity; i++) {
        free(kind->accounts.slots[i].value);
    }
    wpk_table_fini(&kind->accounts);
}
