/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net_line.h"

#define SIZE_SIZE 8
#define NUMBER_SIZE 4

const char wpk_net_greeting_asks[] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
const char wpk_net_greeting_answers[] = {0, 'S', 'P', 0, 0, 0x31, 0, 0};

static char *write_number(char *at, uint64_t number, int size)
{
    for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) {
        *at++ = (char)(number >> shift & 0xff);
    }
    return at;
}

static uint64_t read_number(const char *at, int size)
{
    uint64_t number = 0;
    for (int i = 0; i < size; i++) {
        number = number << 8 | (unsigned char)at[i];
    }
    return number;
}

size_t wpk_net_head_size(bool is_local)
{
    return (is_local ? 1 : 0) + SIZE_SIZE + NUMBER_SIZE;
}

size_t wpk_net_head_write(const struct wpk_net_head *head, bool is_local, char *at)
{
    if (is_local) {
        *at++ = 1;
    }
    at = write_number(at, NUMBER_SIZE + head->size, SIZE_SIZE);
    write_number(at, head->number, NUMBER_SIZE);
    return wpk_net_head_size(is_local);
}

bool wpk_net_head_read(const char *at, bool is_local, size_t size_max, struct wpk_net_head *out)
{
    if (is_local && *at++ != 1) {
        return false;
    }
    uint64_t size = read_number(at, SIZE_SIZE);
    uint32_t number = (uint32_t)read_number(at + SIZE_SIZE, NUMBER_SIZE);
    if (size < NUMBER_SIZE || size - NUMBER_SIZE > size_max ||
        (number & WPK_NET_NUMBER_FIRST) == 0) {
        return false;
    }
    *out = (struct wpk_net_head){.number = number, .size = (size_t)size - NUMBER_SIZE};
    return true;
}
