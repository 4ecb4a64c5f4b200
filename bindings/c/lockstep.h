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

/* As in C, any int may be passed where an enumeration is taken; C++ has to be told. */
#if defined(__cplusplus) && __cplusplus >= 201103L
#define LOCKSTEP_ANY_INT : int
#else
#define LOCKSTEP_ANY_INT
#endif

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

/* What the last call that failed on this thread had to say: "FIELD: found X, expected Y; WHAT TO DO". At most
 * 1,023 bytes; what is longer ends in " ...". Valid until the next failure on this thread; "" before the first. */
const char *lockstep_last_error(void);

/* ---- models ------------------------------------------------------------------------------------------------- */

typedef struct lockstep_model lockstep_model;

typedef struct lockstep_load_options {
  size_t size;                   /* sizeof(lockstep_load_options): which fields the caller knows */
  const char *activations;       /* for safetensors that do not say: one a layer, "tanh,tanh,linear", or one for all
                                    layers but the last, "tanh"; or NULL */
  const char *hidden_activation; /* the latter, in a field of its own; or NULL */
} lockstep_load_options;

/* Reads safetensors and, where liblockstep_c_readers is installed beside this library, ONNX, Keras' files and
 * Lockstep's HDF5. `options` may be NULL; activations other than those that a file names are refused. Of an ONNX file,
 * outputs that are labels (integers, text) and cannot be read are left out: lockstep_model_port tells which there are.
 * Handles are freed by the caller. */
lockstep_status lockstep_model_load(const char *path, const lockstep_load_options *options, lockstep_model **model);
void lockstep_model_free(lockstep_model *model);

/* The derivative of a model as a model again, for whatever takes models, lockstep_device_compile among them. J is the
 * Jacobian of all outputs by all inputs; x stands for the model's input ports, y for its output ports, and each has one
 * of the same width for its direction or cotangent, called "x_dot" or "y_bar" after it.
 * LOCKSTEP_UNSUPPORTED for a model that is a derivative, and for a Jacobian of more than four million weights or a
 * million operations, of which each of its products has a copy. `model` may be freed afterwards. */
typedef enum lockstep_derivative {
  LOCKSTEP_JVP = 0,     /* takes x, then x_dot; gives y, then y_dot = J x_dot */
  LOCKSTEP_VJP = 1,     /* takes x, then y_bar; gives y, then x_bar = J^T y_bar */
  LOCKSTEP_JACOBIAN = 2 /* takes x; gives y, then "jacobian", J by rows: [output][input] */
} lockstep_derivative;
lockstep_status lockstep_model_derivative(const lockstep_model *model, lockstep_derivative which,
                                          lockstep_model **derivative);

/* Counts of features, of all ports together; 0 for a null or wrong handle. */
size_t lockstep_model_inputs(const lockstep_model *model);
size_t lockstep_model_outputs(const lockstep_model *model);

/* Most nets have one input port and one output port. A port is named and has features; those of the ports are counted
 * one port after another. */
typedef enum lockstep_direction LOCKSTEP_ANY_INT { LOCKSTEP_INPUT = 0, LOCKSTEP_OUTPUT = 1 } lockstep_direction;
typedef struct lockstep_port {
  const char *name; /* belongs to the model or plan */
  size_t features;
  size_t first_feature; /* features of the ports before it */
} lockstep_port;
/* How many ports; 0 for a null or wrong handle, or another direction. */
size_t lockstep_model_ports(const lockstep_model *model, lockstep_direction direction);
lockstep_status lockstep_model_port(const lockstep_model *model, lockstep_direction direction, size_t index,
                                    lockstep_port *port);

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

typedef enum lockstep_precision LOCKSTEP_ANY_INT { LOCKSTEP_FLOAT32 = 0, LOCKSTEP_FLOAT64 = 1 } lockstep_precision;

typedef struct lockstep_compile_options {
  size_t size;                  /* sizeof(lockstep_compile_options) */
  lockstep_precision precision; /* of the arithmetic and of the arrays; weights are rounded to it */
  const char *cpu_target;       /* "avx512", "avx2", "neon", "scalar"; NULL: the best of this machine. Same bits. */
  int derivatives;              /* not 0: prepare lockstep_jvp_*, _vjp_* and _jacobian_*, at three times the memory */
} lockstep_compile_options;

/* `options` may be NULL: float32, best instruction set. The model may be freed afterwards. */
lockstep_status lockstep_compile(const lockstep_model *model, const lockstep_compile_options *options,
                                 lockstep_plan **plan);
void lockstep_plan_free(lockstep_plan *plan);

/* Loads a plan file that `lockstep compile` wrote: no model has to be read. One made for any machine, as it is where no
 * --target was named, takes the best instruction set of this one. LOCKSTEP_UNSUPPORTED when it was made for one that
 * this machine lacks, or by another version; LOCKSTEP_BAD_MODEL when it is damaged. */
lockstep_status lockstep_plan_load(const char *path, lockstep_plan **plan);

/* Features and ports, as of the model. */
size_t lockstep_plan_inputs(const lockstep_plan *plan);
size_t lockstep_plan_outputs(const lockstep_plan *plan);
size_t lockstep_plan_ports(const lockstep_plan *plan, lockstep_direction direction);
lockstep_status lockstep_plan_port(const lockstep_plan *plan, lockstep_direction direction, size_t index,
                                   lockstep_port *port);
/* Where the port of that name stands, for arrays in the order of lockstep_plan_port: another export of the same net may
 * have another order. LOCKSTEP_INVALID_ARGUMENT when there is none; the message lists those there are. */
lockstep_status lockstep_plan_port_index(const lockstep_plan *plan, lockstep_direction direction, const char *name,
                                         size_t *index);
lockstep_precision lockstep_plan_precision(const lockstep_plan *plan);
/* Which kernel was chosen, for people. Belongs to the plan. */
const char *lockstep_plan_description(const lockstep_plan *plan);
/* Bytes of scratch one evaluating thread needs, whatever the number of samples. */
size_t lockstep_plan_workspace_bytes(const lockstep_plan *plan);

/* out[sample][output] = net(in[sample][input]) for `samples` samples, on the calling thread.
 *
 * Element (sample, feature) of `in` lies at in[sample * in_sample_stride + feature * in_feature_stride]; likewise
 * `out`. Strides count elements, not bytes, so either layout does: (features, 1) for C's array[sample][feature],
 * (1, samples) for one array a feature. `in` and `out` may share memory only where they are the same view: the same
 * address and strides. Arrays that interleave without sharing a number are apart. Strides of `in` may be 0 or overlap;
 * each result has a place of its own.
 *
 * `workspace` holds lockstep_plan_workspace_bytes() bytes, aligned to 64 bytes, for this call alone and apart from `in`
 * and `out`; NULL: the thread keeps one of its own, allocated by its first call. Nothing else is allocated, but for the
 * message of a call that is refused. The bits of a sample's outputs depend neither on the other samples, nor their
 * number, nor the strides, nor the instruction set.
 *
 * LOCKSTEP_INVALID_ARGUMENT when the plan is of the other precision, a pointer is NULL, arrays overlap, results
 * share a place, no memory can hold as many samples, the workspace is too small, or the net has several input or
 * output ports: use the function after these. */
lockstep_status lockstep_evaluate_f32(const lockstep_plan *plan, size_t samples, const float *in,
                                      ptrdiff_t in_sample_stride, ptrdiff_t in_feature_stride, float *out,
                                      ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride, void *workspace,
                                      size_t workspace_bytes);
lockstep_status lockstep_evaluate_f64(const lockstep_plan *plan, size_t samples, const double *in,
                                      ptrdiff_t in_sample_stride, ptrdiff_t in_feature_stride, double *out,
                                      ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride, void *workspace,
                                      size_t workspace_bytes);

/* The same where samples are counted along two dimensions that one stride does not step through, as the inner points of
 * a field with halos or a section of three dimensions: `slices` times `samples` samples, element (slice, sample,
 * feature) at in[slice * in_slice_stride + sample * in_sample_stride + feature * in_feature_stride]. */
lockstep_status lockstep_evaluate_slices_f32(const lockstep_plan *plan, size_t slices, size_t samples, const float *in,
                                             ptrdiff_t in_slice_stride, ptrdiff_t in_sample_stride,
                                             ptrdiff_t in_feature_stride, float *out, ptrdiff_t out_slice_stride,
                                             ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride,
                                             void *workspace, size_t workspace_bytes);
lockstep_status lockstep_evaluate_slices_f64(const lockstep_plan *plan, size_t slices, size_t samples, const double *in,
                                             ptrdiff_t in_slice_stride, ptrdiff_t in_sample_stride,
                                             ptrdiff_t in_feature_stride, double *out, ptrdiff_t out_slice_stride,
                                             ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride,
                                             void *workspace, size_t workspace_bytes);

/* Arrays of one port: element (sample, feature) lies at data[sample * sample_stride + feature * feature_stride]. */
typedef struct lockstep_input_f32 {
  const float *data;
  ptrdiff_t sample_stride, feature_stride;
} lockstep_input_f32;
typedef struct lockstep_output_f32 {
  float *data;
  ptrdiff_t sample_stride, feature_stride;
} lockstep_output_f32;
typedef struct lockstep_input_f64 {
  const double *data;
  ptrdiff_t sample_stride, feature_stride;
} lockstep_input_f64;
typedef struct lockstep_output_f64 {
  double *data;
  ptrdiff_t sample_stride, feature_stride;
} lockstep_output_f64;

/* The same for any net: one array for each port, in the order of lockstep_plan_port; `in_ports` and `out_ports` are how
 * many are given. No output may overlap another, nor an input unless it is the same view. A net of more than 64 ports on
 * a side has its list of arrays allocated by each call. */
lockstep_status lockstep_evaluate_ports_f32(const lockstep_plan *plan, size_t samples, const lockstep_input_f32 *in,
                                            size_t in_ports, const lockstep_output_f32 *out, size_t out_ports,
                                            void *workspace, size_t workspace_bytes);
lockstep_status lockstep_evaluate_ports_f64(const lockstep_plan *plan, size_t samples, const lockstep_input_f64 *in,
                                            size_t in_ports, const lockstep_output_f64 *out, size_t out_ports,
                                            void *workspace, size_t workspace_bytes);

/* ---- derivatives by the inputs, for implicit solvers and adjoint models around the net ---------------------- */

/* Bytes of scratch the calls below need; 0 for a plan compiled without derivatives. */
size_t lockstep_plan_derivative_workspace_bytes(const lockstep_plan *plan);

/* out_dot[sample] = J in_dot[sample], J [output][input] being the Jacobian at in[sample]; out[sample] = net(in[sample])
 * unless out is NULL. Views, workspace, threads and bits as for lockstep_evaluate_*; what is written may not overlap
 * anything else unless it is the same view. LOCKSTEP_UNSUPPORTED for a plan compiled without derivatives. */
lockstep_status lockstep_jvp_f32(const lockstep_plan *plan, size_t samples, const float *in,
                                 ptrdiff_t in_sample_stride, ptrdiff_t in_feature_stride, const float *in_dot,
                                 ptrdiff_t in_dot_sample_stride, ptrdiff_t in_dot_feature_stride, float *out,
                                 ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride, float *out_dot,
                                 ptrdiff_t out_dot_sample_stride, ptrdiff_t out_dot_feature_stride, void *workspace,
                                 size_t workspace_bytes);
lockstep_status lockstep_jvp_f64(const lockstep_plan *plan, size_t samples, const double *in,
                                 ptrdiff_t in_sample_stride, ptrdiff_t in_feature_stride, const double *in_dot,
                                 ptrdiff_t in_dot_sample_stride, ptrdiff_t in_dot_feature_stride, double *out,
                                 ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride, double *out_dot,
                                 ptrdiff_t out_dot_sample_stride, ptrdiff_t out_dot_feature_stride, void *workspace,
                                 size_t workspace_bytes);

/* in_bar[sample] = J^T out_bar[sample], and out as above. */
lockstep_status lockstep_vjp_f32(const lockstep_plan *plan, size_t samples, const float *in,
                                 ptrdiff_t in_sample_stride, ptrdiff_t in_feature_stride, const float *out_bar,
                                 ptrdiff_t out_bar_sample_stride, ptrdiff_t out_bar_feature_stride, float *out,
                                 ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride, float *in_bar,
                                 ptrdiff_t in_bar_sample_stride, ptrdiff_t in_bar_feature_stride, void *workspace,
                                 size_t workspace_bytes);
lockstep_status lockstep_vjp_f64(const lockstep_plan *plan, size_t samples, const double *in,
                                 ptrdiff_t in_sample_stride, ptrdiff_t in_feature_stride, const double *out_bar,
                                 ptrdiff_t out_bar_sample_stride, ptrdiff_t out_bar_feature_stride, double *out,
                                 ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride, double *in_bar,
                                 ptrdiff_t in_bar_sample_stride, ptrdiff_t in_bar_feature_stride, void *workspace,
                                 size_t workspace_bytes);

/* The same for any net, one array for each port: in_dot and in_bar for the input ports, out, out_dot and out_bar for the
 * output ports; `in_ports` and `out_ports` are how many there are. `out` may be NULL, and so may the data of any of its
 * ports. */
lockstep_status lockstep_jvp_ports_f32(const lockstep_plan *plan, size_t samples, const lockstep_input_f32 *in,
                                       const lockstep_input_f32 *in_dot, const lockstep_output_f32 *out,
                                       const lockstep_output_f32 *out_dot, size_t in_ports,
                                       size_t out_ports, void *workspace, size_t workspace_bytes);
lockstep_status lockstep_jvp_ports_f64(const lockstep_plan *plan, size_t samples, const lockstep_input_f64 *in,
                                       const lockstep_input_f64 *in_dot, const lockstep_output_f64 *out,
                                       const lockstep_output_f64 *out_dot, size_t in_ports,
                                       size_t out_ports, void *workspace, size_t workspace_bytes);
lockstep_status lockstep_vjp_ports_f32(const lockstep_plan *plan, size_t samples, const lockstep_input_f32 *in,
                                       const lockstep_input_f32 *out_bar, const lockstep_output_f32 *out,
                                       const lockstep_output_f32 *in_bar, size_t in_ports,
                                       size_t out_ports, void *workspace, size_t workspace_bytes);
lockstep_status lockstep_vjp_ports_f64(const lockstep_plan *plan, size_t samples, const lockstep_input_f64 *in,
                                       const lockstep_input_f64 *out_bar, const lockstep_output_f64 *out,
                                       const lockstep_output_f64 *in_bar, size_t in_ports,
                                       size_t out_ports, void *workspace, size_t workspace_bytes);

/* jacobian[sample][output][input] = the derivative of that output by that input at in[sample], whole: for Newton steps of
 * nets with few inputs or outputs. out[sample] = net(in[sample]) unless out is NULL. Element (sample, output, input) lies
 * at jacobian[sample * jacobian_sample_stride + output * jacobian_output_stride + input * jacobian_input_stride]: strides
 * (outputs * inputs, inputs, 1) for C's array[sample][output][input], (outputs * inputs, 1, outputs) for matrices by
 * columns, as LAPACK and Fortran have them. It may overlap nothing else. The bits are those of products with unit vectors:
 * of lockstep_jvp_* where inputs are not more than outputs, of lockstep_vjp_* otherwise. The rest is as above. */
lockstep_status lockstep_jacobian_f32(const lockstep_plan *plan, size_t samples, const float *in,
                                      ptrdiff_t in_sample_stride, ptrdiff_t in_feature_stride, float *out,
                                      ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride, float *jacobian,
                                      ptrdiff_t jacobian_sample_stride, ptrdiff_t jacobian_output_stride,
                                      ptrdiff_t jacobian_input_stride, void *workspace, size_t workspace_bytes);
lockstep_status lockstep_jacobian_f64(const lockstep_plan *plan, size_t samples, const double *in,
                                      ptrdiff_t in_sample_stride, ptrdiff_t in_feature_stride, double *out,
                                      ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride, double *jacobian,
                                      ptrdiff_t jacobian_sample_stride, ptrdiff_t jacobian_output_stride,
                                      ptrdiff_t jacobian_input_stride, void *workspace, size_t workspace_bytes);

/* The same for any net, one array for each port; `out` and the data of any of its ports may be NULL. The outputs of the
 * Jacobian, and its inputs, are counted one port after another, as lockstep_port's first_feature says. */
lockstep_status lockstep_jacobian_ports_f32(const lockstep_plan *plan, size_t samples, const lockstep_input_f32 *in,
                                            size_t in_ports, const lockstep_output_f32 *out, size_t out_ports,
                                            float *jacobian, ptrdiff_t jacobian_sample_stride,
                                            ptrdiff_t jacobian_output_stride, ptrdiff_t jacobian_input_stride,
                                            void *workspace, size_t workspace_bytes);
lockstep_status lockstep_jacobian_ports_f64(const lockstep_plan *plan, size_t samples, const lockstep_input_f64 *in,
                                            size_t in_ports, const lockstep_output_f64 *out, size_t out_ports,
                                            double *jacobian, ptrdiff_t jacobian_sample_stride,
                                            ptrdiff_t jacobian_output_stride, ptrdiff_t jacobian_input_stride,
                                            void *workspace, size_t workspace_bytes);

/* ---- on an NVIDIA GPU: arrays that lie on the device, in order on the host program's own stream ------------ */

typedef struct lockstep_device_plan lockstep_device_plan;

typedef struct lockstep_device_options {
  size_t size;                  /* sizeof(lockstep_device_options) */
  lockstep_precision precision; /* of the arithmetic and of the arrays */
  int device;                   /* as nvidia-smi counts */
  const char *matrix_precision; /* "f32" or NULL: the bits of the CPU; "tf32", "bf16", "fp16": tensor cores, other bits */
} lockstep_device_options;

/* Uploads the net, any net, to a GPU; `options` may be NULL: float32, the first one. Tensor cores take plain stacks of
 * dense layers, up to 256 wide. Opens liblockstep_cuda.so, which nothing links: LOCKSTEP_UNSUPPORTED, saying which,
 * where that, a driver, the device or memory on it is missing. The model may be freed afterwards. */
lockstep_status lockstep_device_compile(const lockstep_model *model, const lockstep_device_options *options,
                                        lockstep_device_plan **plan);
/* Wait for what was queued first. */
void lockstep_device_plan_free(lockstep_device_plan *plan);

/* Features and ports, as of the model. */
size_t lockstep_device_plan_inputs(const lockstep_device_plan *plan);
size_t lockstep_device_plan_outputs(const lockstep_device_plan *plan);
size_t lockstep_device_plan_ports(const lockstep_device_plan *plan, lockstep_direction direction);
lockstep_status lockstep_device_plan_port(const lockstep_device_plan *plan, lockstep_direction direction, size_t index,
                                          lockstep_port *port);
lockstep_status lockstep_device_plan_port_index(const lockstep_device_plan *plan, lockstep_direction direction,
                                                const char *name, size_t *index);
/* Device and tile sizes, for people. Belongs to the plan. */
const char *lockstep_device_plan_description(const lockstep_device_plan *plan);

/* Queues out[sample][output] = net(in[sample][input]) on `stream`, a cudaStream_t of the plan's device (NULL: its default
 * stream), and returns at once. `in` and `out` are addresses on the device; strides, overlaps and bits as for
 * lockstep_evaluate_*. Allocates nothing, waits for nothing, may be captured in a CUDA graph, and leaves the thread's
 * current device as it was. What goes wrong while it runs is reported by the stream, as for any kernel. */
lockstep_status lockstep_enqueue_f32(const lockstep_device_plan *plan, void *stream, size_t samples, const float *in,
                                     ptrdiff_t in_sample_stride, ptrdiff_t in_feature_stride, float *out,
                                     ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride);
lockstep_status lockstep_enqueue_f64(const lockstep_device_plan *plan, void *stream, size_t samples, const double *in,
                                     ptrdiff_t in_sample_stride, ptrdiff_t in_feature_stride, double *out,
                                     ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride);

/* The same for any net: one array on the device for each port, in the order of lockstep_device_plan_port. */
lockstep_status lockstep_enqueue_ports_f32(const lockstep_device_plan *plan, void *stream, size_t samples,
                                           const lockstep_input_f32 *in, size_t in_ports, const lockstep_output_f32 *out,
                                           size_t out_ports);
lockstep_status lockstep_enqueue_ports_f64(const lockstep_device_plan *plan, void *stream, size_t samples,
                                           const lockstep_input_f64 *in, size_t in_ports, const lockstep_output_f64 *out,
                                           size_t out_ports);

#ifdef __cplusplus
}
#endif

#endif
