/* SPDX-License-Identifier: Apache-2.0 */
/* The weights and quotas of owners that the configuration names. */
#include "coordinator/service_state.h"

static void set_owner(struct wpk_service *service, const struct wpk_config_owner *owner,
                      const char *name)
{
    struct wpk_event event = {
        .kind = WPK_EVENT_SET_OWNER,
        .owner = {.name = name, .weight = owner->weight, .jobs_max = owner->jobs_max}};
    wpk_executor_step(service->executor, &event);
}

void wpk_service_set_owners(void *user)
{
    struct wpk_service *service = user;
    const struct wpk_config *config = service->config;
    set_owner(service, &config->owner_default, "");
    for (uint32_t i = 0; i < config->owner_count; i++) {
        set_owner(service, &config->owners[i], config->owners[i].name);
    }
}

void wpk_service_forget_owners(struct wpk_service *service, const struct wpk_config *before)
{
    for (uint32_t i = 0; i < before->owner_count; i++) {
        set_owner(service, &service->config->owner_default, before->owners[i].name);
    }
}
