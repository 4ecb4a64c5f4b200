/* What a program that was linked with -static is told of GPUs: the component, which brings the C++ runtime a second
 * time, is not opened, wherever it lies. usage: device MODEL */
#include <stdio.h>

#include "lockstep.h"

int main(int argc, char** argv) {
  lockstep_model* model = NULL;
  lockstep_device_plan* plan = NULL;
  if (argc != 2 || lockstep_model_load(argv[1], NULL, &model)) return 1;
  const int status = lockstep_device_compile(model, NULL, &plan);
  printf("%d %s\n", status, lockstep_last_error());
  lockstep_model_free(model);
  return 0;
}
