/* SPDX-License-Identifier: Apache-2.0 */
/* The file that moves history between installations: a JSON object on each line, in this order.
 *
 *     {"wpk_export":1,"program":"0.1.0","created":"..."}
 *     {"artifact":{"sha256":"...","size":"41232"}}    that many bytes and a newline follow
 *     {"problem":{...}}                               what follows, up to the next one, is of it
 *     {"trial":{...,"measurements":[...]}}
 *     {"kernel":{"search":{...},...}}                 those that are served
 *     {"end":{"sha256":"..."}}                        of all bytes before this line
 *
 * Members are named as the columns of schema.sql; 64-bit numbers are strings. Nothing refers to a
 * row's number: what is the same is told by content. */
#ifndef WPK_COORDINATOR_DB_DB_FILE_H
#define WPK_COORDINATOR_DB_DB_FILE_H

#define WPK_DB_FILE_VERSION 1
#define WPK_DB_LINE_MAX ((size_t)8 << 20) /* bytes: schedules are long */

#endif
