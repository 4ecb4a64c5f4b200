// A scalar lane that counts the operations a function takes an element, set and bit casts not among them.
#pragma once

#include "lockstep/kernels/math/detail/function_table.h"

namespace lockstep::math {

struct OperationCount {
  int all = 0;
  int divisions = 0;  // and square roots
};

template <class T>
OperationCount count_operations(const Entry& entry);

extern template OperationCount count_operations<float>(const Entry&);
extern template OperationCount count_operations<double>(const Entry&);

}  // namespace lockstep::math
