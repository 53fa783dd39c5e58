/* SPDX-License-Identifier: Apache-2.0 */
/* Derives the space of a job's operator and checks the job's pins, before anything is started. */
#ifndef WPK_CLIENT_JOB_SPACE_H
#define WPK_CLIENT_JOB_SPACE_H

#include "schema/job.h"
#include "search/space.h"

/* Describe the device whose space the job's is: the class that its target names; else this machine,
 * or for GPUs the emulated one.
 *   errors  WPK_ESYSTEM */
WPK_MUST_CHECK wpk_err wpk_job_space_device(const struct wpk_job *job, struct wpk_device *out,
                                            struct wpk_diag *diag);

/* Derive the space of an operator with the job's pins.
 *
 *   owns    caller calls wpk_space_fini
 *   errors  WPK_EINVAL  a pin names no gene, or no value of it: `diag` has the field
 *           search.pin.GENE and a suggestion; those of wpk_space_derive */
WPK_MUST_CHECK wpk_err wpk_job_space(const struct wpk_job *job, enum wpk_layouts layouts,
                                     const struct wpk_program *program,
                                     const struct wpk_device *device, struct wpk_space *out,
                                     struct wpk_diag *diag);

/* Check that each pin of the job is a gene of each of its operators on this machine.
 *   errors  those of wpk_job_space */
WPK_MUST_CHECK wpk_err wpk_job_space_check(const struct wpk_job *job, struct wpk_diag *diag);

#endif
