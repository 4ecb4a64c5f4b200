/* Lockstep from C, and from everything that can call C: load a trained net, lower it for this machine, evaluate it
 * in place on the host program's own arrays. C99; no other header of Lockstep is needed.
 *
 *   lockstep_model *model = NULL;
 *   lockstep_plan *plan = NULL;
 *   if (lockstep_model_load("net.safetensors", NULL, &model) || lockstep_compile(model, NULL, &plan))
 *     fprintf(stderr, "%s\n", lockstep_last_error());
 *   lockstep_evaluate_f32(plan, columns, in, 32, 1, out, 31, 1, NULL, 0);   // in[column][32], out[column][31]
 *
 * Every function that can fail returns a status and leaves its outputs as they were when it does; nothing is printed,
 * nothing aborts. What a handle points to is immutable: any number of threads may use one at once. Freeing NULL does
 * nothing. Within one LOCKSTEP_ABI_VERSION functions and fields are only added. */
#ifndef LOCKSTEP_H_
#define LOCKSTEP_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LOCKSTEP_ABI_VERSION 1

/* The library's ABI version, to be compared with LOCKSTEP_ABI_VERSION, and its own: "0.1.0". */
int lockstep_abi_version(void);
const char *lockstep_version(void);

typedef enum lockstep_status {
  LOCKSTEP_OK = 0,
  LOCKSTEP_INVALID_ARGUMENT = 1, /* a value the caller gave is unusable; a null or wrong handle */
  LOCKSTEP_BAD_MODEL = 2,        /* a model file cannot be used */
  LOCKSTEP_BAD_FILE = 3,         /* reading a file failed */
  LOCKSTEP_UNSUPPORTED = 4,      /* valid, but not available in this build or on this machine */
  LOCKSTEP_CANCELLED = 5,
  LOCKSTEP_OUT_OF_MEMORY = 6,
  LOCKSTEP_INTERNAL = 7 /* a fault of Lockstep's own */
} lockstep_status;

/* What the last call that failed on this thread had to say: "FIELD: found X, expected Y; WHAT TO DO". Valid until
 * the next failure on this thread; "" before the first. */
const char *lockstep_last_error(void);

/* ---- models ------------------------------------------------------------------------------------------------- */

typedef struct lockstep_model lockstep_model;

typedef struct lockstep_load_options {
  size_t size;                   /* sizeof(lockstep_load_options): which fields the caller knows */
  const char *activations;       /* for files that do not say: one a layer, "tanh,tanh,linear"; or NULL */
  const char *hidden_activation; /* or one for all layers but the last; or NULL */
} lockstep_load_options;

/* Reads safetensors, and Lockstep's HDF5 where liblockstep_c_hdf5 is installed beside this library. `options` (for
 * safetensors alone) may be NULL. Handles are freed by the caller. */
lockstep_status lockstep_model_load(const char *path, const lockstep_load_options *options, lockstep_model **model);
void lockstep_model_free(lockstep_model *model);

/* Counts of features; 0 for a null or wrong handle. */
size_t lockstep_model_inputs(const lockstep_model *model);
size_t lockstep_model_outputs(const lockstep_model *model);

/* What the file says of one feature. Strings belong to the model and are "" where the file says nothing; the range
 * of the training data is -inf to inf where unknown. */
typedef struct lockstep_feature {
  const char *name;
  const char *unit;
  double minimum;
  double maximum;
} lockstep_feature;
lockstep_status lockstep_model_input(const lockstep_model *model, size_t index, lockstep_feature *feature);
lockstep_status lockstep_model_output(const lockstep_model *model, size_t index, lockstep_feature *feature);

/* ---- plans: a model lowered for one precision and instruction set ------------------------------------------ */

typedef struct lockstep_plan lockstep_plan;

typedef enum lockstep_precision { LOCKSTEP_FLOAT32 = 0, LOCKSTEP_FLOAT64 = 1 } lockstep_precision;

typedef struct lockstep_compile_options {
  size_t size;                  /* sizeof(lockstep_compile_options) */
  lockstep_precision precision; /* of the arithmetic and of the arrays; weights are rounded to it */
  const char *cpu_target;       /* "avx512", "avx2", "neon", "scalar"; NULL: the best of this machine. Same bits. */
} lockstep_compile_options;

/* `options` may be NULL: float32, best instruction set. The model may be freed afterwards. */
lockstep_status lockstep_compile(const lockstep_model *model, const lockstep_compile_options *options,
                                 lockstep_plan **plan);
void lockstep_plan_free(lockstep_plan *plan);

size_t lockstep_plan_inputs(const lockstep_plan *plan);
size_t lockstep_plan_outputs(const lockstep_plan *plan);
lockstep_precision lockstep_plan_precision(const lockstep_plan *plan);
/* Which kernel was chosen, for people. Belongs to the plan. */
const char *lockstep_plan_description(const lockstep_plan *plan);
/* Bytes of scratch one evaluating thread needs, whatever the number of samples. */
size_t lockstep_plan_workspace_bytes(const lockstep_plan *plan);

/* out[sample][output] = net(in[sample][input]) for `samples` samples, on the calling thread.
 *
 * Element (sample, feature) of `in` lies at in[sample * in_sample_stride + feature * in_feature_stride]; likewise
 * `out`. Strides count elements, not bytes, so either layout does: (features, 1) for C's array[sample][feature],
 * (1, samples) for one array a feature. `in` and `out` may not overlap unless they are the same view.
 *
 * `workspace` holds lockstep_plan_workspace_bytes() bytes, aligned to 64 bytes, for this call alone; NULL: the thread
 * keeps one of its own, allocated by its first call. Nothing else is allocated. The bits of a sample's outputs depend
 * neither on the other samples, nor their number, nor the strides, nor the instruction set.
 *
 * LOCKSTEP_INVALID_ARGUMENT when the plan is of the other precision, a pointer is NULL, or the workspace too small. */
lockstep_status lockstep_evaluate_f32(const lockstep_plan *plan, size_t samples, const float *in,
                                      ptrdiff_t in_sample_stride, ptrdiff_t in_feature_stride, float *out,
                                      ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride, void *workspace,
                                      size_t workspace_bytes);
lockstep_status lockstep_evaluate_f64(const lockstep_plan *plan, size_t samples, const double *in,
                                      ptrdiff_t in_sample_stride, ptrdiff_t in_feature_stride, double *out,
                                      ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride, void *workspace,
                                      size_t workspace_bytes);

#ifdef __cplusplus
}
#endif

#endif
