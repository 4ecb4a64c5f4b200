/* What a host opens with dlopen(): a library of its own that holds liblockstep_c.a. */
#include <stdlib.h>

#include "lockstep.h"

/* Evaluates one sample of a net of one port on each side; 0 where all went well. */
int plug_in_evaluates(const char* net);
int plug_in_evaluates(const char* net) {
  lockstep_model* model = NULL;
  lockstep_plan* plan = NULL;
  int failed = lockstep_model_load(net, NULL, &model) || lockstep_compile(model, NULL, &plan);
  if (!failed) {
    const size_t inputs = lockstep_plan_inputs(plan), outputs = lockstep_plan_outputs(plan);
    float *in = calloc(inputs, sizeof *in), *out = calloc(outputs, sizeof *out);
    failed =
        !in || !out || lockstep_evaluate_f32(plan, 1, in, (ptrdiff_t)inputs, 1, out, (ptrdiff_t)outputs, 1, NULL, 0);
    free(in);
    free(out);
  }
  lockstep_plan_free(plan);
  lockstep_model_free(model);
  return failed;
}
