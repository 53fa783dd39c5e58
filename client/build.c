/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl build: build, verify and time a schedule that was edited by hand. The work is done by
 * wpk-evaluate, which owns a builder and a runner; here it is started and its record shown. */
#include "client/child.h"
#include "client/command.h"
#include "client/format.h"
#include "common/fs.h"
#include "schema/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIRECTIVES_SIZE_MAX ((size_t)1 << 20)
#define RECORD_SIZE_MAX ((size_t)4 << 20)
#define PATH_SIZE 4096

