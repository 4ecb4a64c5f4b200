#include "lockstep/kernels/mlp/derivative_plan.h"

#include <cstdint>
#include <string>
#include <utility>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/error.h"
#include "lockstep/core/matrix_overlap.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/kernels/mlp/detail/kept_workspace.h"
#include "lockstep/kernels/mlp/detail/reverse_packed.h"

namespace lockstep {
namespace {

// The field's text is put together only where it is needed: calls must not allocate.
void require(bool good, const char* field, const char* part, std::size_t found, std::size_t expected,
             const char* remedy) {
  if (good) return;
  throw Error(ErrorKind::invalid_argument,
              {std::string(field) + part, std::to_string(found), std::to_string(expected), remedy});
}

template <class T>
void require_shape(const char* name, const MatrixView<T>& view, std::size_t rows, std::size_t columns) {
  require(view.columns == columns, name, ".columns", view.columns, columns, "give one column a feature of the net");
  require(view.rows == rows, name, ".rows", view.rows, rows, "give as many rows as in has");
  if (lacks_address(view)) refuse_null(name);
}

// The linear part of every layer.
Mlp without_activations(Mlp mlp) {
  for (DenseLayer& layer : mlp.layers) {
    layer.bias.assign(layer.bias.size(), 0);
    layer.activation = {};
  }
  mlp.input_scaling = {};
  mlp.output_scaling = {};
  return mlp;
}

}  // namespace

template <class T>
struct DerivativePlan<T>::Nets {
  mlp::ReverseNet<T> net;
  mlp::Packed<T> tangent;

  std::size_t workspace_numbers() const {
    // As derivative_tile-inl.h divides it; the scratch is that of reverse_tile.
    const mlp::Packed<T>& packed = net.packed;
    const std::size_t rows = net.tile_activations + net.tile_cotangents + packed.outputs() + 3 * packed.widest;
    return rows * kTileLanes + 2 * packed.half();
  }

  // The workspace as numbers, once everything is known to fit.
  T* checked(const char* first, std::size_t first_columns, const char* second, std::size_t second_columns,
             const MatrixView<const T>& in, const MatrixView<const T>& vector, const MatrixView<T>& out,
             const MatrixView<T>& result, std::span<std::byte> workspace) const {
    require_shape("in", in, in.rows, net.packed.inputs());
    require_shape(first, vector, in.rows, first_columns);
    if (out.data != nullptr) require_shape("out", out, in.rows, net.packed.outputs());
    require_shape(second, result, in.rows, second_columns);
    for (const auto& [written, name] : {std::pair(&out, "out"), std::pair(&result, second)}) {
      if (written->data == nullptr) continue;
      if (!has_own_places(*written)) refuse_shared_places(name, places_of(*written));
      const auto require_beside = [&to = *written, to_name = name](const MatrixView<const T>& read,
                                                                   const char* read_name) {
        if (may_write_beside(to, read)) return;
        refuse_overlap(to_name, places_of(to), read_name, places_of(read));
      };
      require_beside(in, "in");
      require_beside(vector, first);
    }
    if (out.data != nullptr && !may_write_both(out, result)) {
      refuse_two_results(second, places_of(result), "out", places_of(out));
    }
    const std::size_t bytes = workspace_numbers() * sizeof(T);
    require(workspace.size() >= bytes, "workspace", "", workspace.size(), bytes,
            "give at least workspace_bytes() bytes");
    const std::size_t past = reinterpret_cast<std::uintptr_t>(workspace.data()) % kAlignment;
    require(past == 0, "workspace", " alignment", past, 0, "align it to 64 bytes");
    const Extent used = workspace_extent(workspace, bytes);
    require_apart(used, in, [] { return "in"; });
    require_apart(used, vector, [&] { return first; });
    require_apart(used, out, [] { return "out"; });
    require_apart(used, result, [&] { return second; });
    return reinterpret_cast<T*>(workspace.data());
  }
};

template <class T>
DerivativePlan<T> DerivativePlan<T>::compile(const Mlp& mlp, CpuTarget target) {
  const StandardArithmetic arithmetic;
  auto nets = std::make_shared<Nets>(
      Nets{mlp::prepare_reverse<T>(mlp, target), mlp::pack<T>(without_activations(mlp), target)});
  mlp::pack_narrow_back_rows(nets->net);
  return DerivativePlan(std::move(nets));
}

template <class T>
std::size_t DerivativePlan<T>::inputs() const {
  return nets_->net.packed.inputs();
}
template <class T>
std::size_t DerivativePlan<T>::outputs() const {
  return nets_->net.packed.outputs();
}
template <class T>
CpuTarget DerivativePlan<T>::cpu_target() const {
  return nets_->net.packed.target;
}
template <class T>
std::size_t DerivativePlan<T>::workspace_bytes() const {
  return nets_->workspace_numbers() * sizeof(T);
}

template <class T>
void DerivativePlan<T>::jvp(MatrixView<const T> in, MatrixView<const T> in_dot, MatrixView<T> out,
                            MatrixView<T> out_dot, std::span<std::byte> workspace, const mlp::Vectors& vectors) const {
  const StandardArithmetic arithmetic;
  T* const numbers = nets_->checked("in_dot", inputs(), "out_dot", outputs(), in, in_dot, out, out_dot, workspace);
  nets_->net.kernels->jvp(nets_->net, nets_->tangent, in, in_dot, out, out_dot, vectors, numbers);
}

template <class T>
void DerivativePlan<T>::vjp(MatrixView<const T> in, MatrixView<const T> out_bar, MatrixView<T> out,
                            MatrixView<T> in_bar, std::span<std::byte> workspace, const mlp::Vectors& vectors) const {
  const StandardArithmetic arithmetic;
  T* const numbers = nets_->checked("out_bar", outputs(), "in_bar", inputs(), in, out_bar, out, in_bar, workspace);
  nets_->net.kernels->vjp(nets_->net, in, out_bar, out, in_bar, vectors, numbers);
}

template <class T>
void DerivativePlan<T>::jvp(MatrixView<const T> in, MatrixView<const T> in_dot, MatrixView<T> out,
                            MatrixView<T> out_dot) const {
  jvp(in, in_dot, out, out_dot, mlp::kept_workspace(workspace_bytes()));
}

template <class T>
void DerivativePlan<T>::vjp(MatrixView<const T> in, MatrixView<const T> out_bar, MatrixView<T> out,
                            MatrixView<T> in_bar) const {
  vjp(in, out_bar, out, in_bar, mlp::kept_workspace(workspace_bytes()));
}

template class DerivativePlan<float>;
template class DerivativePlan<double>;

}  // namespace lockstep
