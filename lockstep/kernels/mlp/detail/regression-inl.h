// Loss and gradient over a chunk of tiles. Layer by layer on the way back, so that cotangents can take the place of
// the values they are cotangents of. No include guard: part of reverse_kernels-inl.h.

// Costs of the residuals of one tile's outputs: adds weight cost(r) to lane_sums [kTileLanes], and puts the
// cotangents in the place of y. Lanes from `lanes` on count nothing. `factor` as `target`, where residuals have any:
// of z = f r the cost has the slope f cost'(z) by the output.
template <class T, Residual kResidual, bool kHasFactors>
void tile_cost(const ReverseNet<T>& net, const mlp::RegressionCost<T>& cost, const T* target, const T* factor,
               size_t lanes, T* y, double* lane_sums) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  const auto& packed = net.packed;
  const bool scaled = !packed.output_scale.empty();
  HWY_ALIGN T sums[kTileLanes];
  HWY_ALIGN T counts[kTileLanes];
  for (size_t lane = 0; lane < kTileLanes; ++lane) {
    sums[lane] = T(0);
    counts[lane] = lane < lanes ? T(1) : T(0);
  }
  const auto zero = L::zero();
  for (size_t c = 0; c < packed.outputs(); ++c, y += kTileLanes, target += kTileLanes) {
    const auto delta = L::set(cost.deltas[c]);
    const auto weight = L::set(cost.weights[c]), bar_weight = L::set(cost.bar_weights[c]);
    const auto scale = L::set(scaled ? packed.output_scale[c] : T(1));
    const auto shift = L::set(scaled ? packed.output_shift[c] : T(0));
    for (size_t lane = 0; lane < kTileLanes; lane += hn::Lanes(d)) {
      auto value = hn::Load(d, y + lane);
      if (scaled) value = L::fma(value, scale, shift);
      const auto counted = L::lt(zero, hn::Load(d, counts + lane));
      auto r = L::select(counted, L::sub(value, hn::Load(d, target + lane)), zero);
      if constexpr (kHasFactors) r = L::mul(r, hn::Load(d, factor + lane));
      auto sum = hn::Load(d, sums + lane);
      auto slope = r;
      if constexpr (kResidual == Residual::squared) {
        sum = L::fma(L::mul(weight, r), r, sum);
        slope = L::add(r, r);
      } else if constexpr (kResidual == Residual::absolute) {
        sum = L::fma(weight, L::abs(r), sum);
        slope = L::select(L::eq(r, zero), r, L::copysign(L::set(T(1)), r));
      } else {
        slope = L::max(L::min(r, delta), L::neg(delta));
        sum = L::fma(L::mul(weight, slope), L::nfma(L::set(T(0.5)), slope, r), sum);
      }
      hn::Store(sum, d, sums + lane);
      auto bar = L::mul(slope, bar_weight);
      if constexpr (kHasFactors) bar = L::mul(bar, hn::Load(d, factor + lane));
      if (scaled) bar = L::mul(bar, scale);
      hn::Store(bar, d, y + lane);
    }
    if constexpr (kHasFactors) factor += kTileLanes;
  }
  for (size_t lane = 0; lane < kTileLanes; ++lane) lane_sums[lane] += static_cast<double>(sums[lane]);
}

// The values of one tile's layers into its rows of the workspace, of as many lanes as its samples need.
template <class T>
void regression_forward(const ReverseNet<T>& net, const T* in, int samples, T* rows) {
  constexpr size_t kRow = kTileLanes;
  const size_t lanes = hn::Lanes(Register<T>());
  for_strips<T>(samples, [&](size_t first, int registers) HWY_ATTR {
    const T* x = in + first;
    for (const ReverseLayer<T>& layer : net.layers) {
      T* const y = rows + layer.chunk_y * kRow + first;
      T* const z = layer.chunk_z == Places::kNone ? nullptr : rows + layer.chunk_z * kRow + first;
      const ActivationKind kind = layer.forward.activation;
      if (z == nullptr || mlp::derivative_from_value(kind)) {
        tile_layer(layer.forward, x, kRow, y, kRow, registers);
        for (size_t c = 0; z != nullptr && c < layer.forward.outputs; ++c) {
          std::copy_n(y + c * kRow, static_cast<size_t>(registers) * lanes, z + c * kRow);
        }
      } else {
        tile_layer(layer.linear, x, kRow, z, kRow, registers);
        activate_pass<T>(kind)(z, kRow, y, kRow, layer.forward.outputs, registers, layer.forward.alpha);
      }
      x = y;
    }
  });
}

template <class T, bool kHasFactors>
auto tile_cost_of(Residual residual) {
  return residual == Residual::squared    ? tile_cost<T, Residual::squared, kHasFactors>
         : residual == Residual::absolute ? tile_cost<T, Residual::absolute, kHasFactors>
                                          : tile_cost<T, Residual::huber, kHasFactors>;
}

template <class T>
double regression_chunk(const ReverseNet<T>& net, const mlp::RegressionCost<T>& cost,
                        const mlp::RegressionChunk<T>& chunk, T* gradient, T* workspace) {
  constexpr size_t kRow = kTileLanes;
  constexpr size_t kMostTiles = 16;
  const size_t lanes = hn::Lanes(Register<T>());
  const size_t tile_size = net.chunk_rows * kRow;
  const size_t inputs = net.packed.inputs() * kRow, outputs = net.packed.outputs() * kRow;
  const ReverseLayer<T>& last = net.layers.back();
  HWY_ALIGN double lane_sums[kTileLanes] = {};
  const auto add_cost =
      chunk.factors == nullptr ? tile_cost_of<T, false>(cost.residual) : tile_cost_of<T, true>(cost.residual);
  RecordedTile<T> first_layer[kMostTiles], other_layers[kMostTiles];
  const auto samples_of = [&](size_t tile) { return static_cast<int>(std::min(kRow, chunk.samples - tile * kRow)); };
  for (size_t i = 0; i < chunk.tiles; ++i) {
    T* const rows = workspace + i * tile_size;
    const int samples = samples_of(i), computed = static_cast<int>(computed_lanes<T>(samples));
    regression_forward(net, chunk.inputs + i * inputs, samples, rows);
    add_cost(net, cost, chunk.targets + i * outputs, chunk.factors == nullptr ? nullptr : chunk.factors + i * outputs,
             static_cast<size_t>(samples), rows + last.chunk_y * kRow, lane_sums);
    first_layer[i] = {chunk.inputs + i * inputs, rows, computed};
    other_layers[i] = {rows, rows, computed};
  }
  for (size_t half = kTileLanes / 2; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; ++lane) lane_sums[lane] += lane_sums[lane + half];
  }
  if (gradient == nullptr) return lane_sums[0];
  for (size_t l = net.layers.size(); l-- > 0;) {
    const ReverseLayer<T>& layer = net.layers[l];
    if (layer.chunk_z != Places::kNone) {
      for (size_t i = 0; i < chunk.tiles; ++i) {
        T* const rows = workspace + i * tile_size;
        derivative_pass<T>(layer.forward.activation)(
            rows + layer.chunk_z * kRow, kRow, rows + layer.chunk_y * kRow, kRow, layer.forward.outputs,
            static_cast<size_t>(other_layers[i].lanes) / lanes, layer.forward.alpha);
      }
    }
    const RecordedTile<T>* const tiles = l == 0 ? first_layer : other_layers;
    const size_t x = l == 0 ? 0 : net.layers[l - 1].chunk_y;
    if (chunk.tiles == 1 && takes_few(layer, chunk.samples)) {
      few_samples_gradient(layer, chunk.samples, *tiles, layer.chunk_y, x, workspace + tile_size,
                           gradient + layer.parameters);
    } else {
      layer_gradient<T>(layer, {tiles, chunk.tiles}, layer.chunk_y, x, gradient + layer.parameters);
    }
    if (l == 0) break;
    const ReverseLayer<T>& before = net.layers[l - 1];
    const BackLayer<T> back =
        back_layer<T>(before.chunk_z == Places::kNone ? before.forward.activation : ActivationKind::identity);
    for (size_t i = 0; i < chunk.tiles; ++i) {
      T* const rows = workspace + i * tile_size;
      for_strips<T>(samples_of(i), [&](size_t first, int registers) HWY_ATTR {
        T* const values = rows + before.chunk_y * kRow + first;
        back(layer, rows + layer.chunk_y * kRow + first, values, values, registers, nullptr);
      });
    }
  }
  return lane_sums[0];
}
