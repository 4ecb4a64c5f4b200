// A net as a list of steps, made once: what a strip of two registers goes through, without a question on the way. The
// small nets spent up to a quarter of their time on such questions. No include guard: part of kernels-inl.h.

// Layers whose inputs stay in registers while their outputs pass by, one after another. A block of outputs has nearly
// as many stores as products there, all of them at its end: such layers take 0.7 of the time of blocks (4 inputs, Zen
// 5).
inline constexpr size_t kFewInputs = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 8
                                     : HWY_TARGET == HWY_AVX2                         ? 4
                                                                                      : 0;

template <class T>
bool has_few_inputs(const PackedLayer<T>& layer) {
  return layer.inputs <= kFewInputs && layer.outputs > 1;
}

// A TileBlock but for its third argument, the number of outputs.
template <class T, int kInputs, bool kRelu>
void few_inputs(const T* HWY_RESTRICT x, size_t x_stride, size_t outputs, const T* HWY_RESTRICT w, T* HWY_RESTRICT y,
                size_t y_stride) {
  const Register<T> d;
  using L = HwyLane<Register<T>>;
  using V = typename L::V;
  const size_t lanes = hn::Lanes(d);
  V in[kInputs][2];
#pragma GCC unroll 8
  for (int i = 0; i < kInputs; ++i, x += x_stride) {
    in[i][0] = hn::LoadU(d, x);
    in[i][1] = hn::LoadU(d, x + lanes);
  }
  const auto output = [&]() HWY_ATTR __attribute__((always_inline)) {
    V sum[2] = {L::set(w[0]), L::set(w[0])};
#pragma GCC unroll 8
    for (int i = 0; i < kInputs; ++i) {
      const V weight = L::set(w[1 + i]);
      sum[0] = L::fma(weight, in[i][0], sum[0]);
      sum[1] = L::fma(weight, in[i][1], sum[1]);
    }
#pragma GCC unroll 2
    for (size_t r = 0; r < 2; ++r) {
      if constexpr (kRelu) sum[r] = activate<ActivationKind::relu, L>(sum[r], L::zero());
      hn::StoreU(sum[r], d, y + r * lanes);
    }
    w += 1 + kInputs;
    y += y_stride;
  };
  for (; outputs >= 4; outputs -= 4) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) output();
  }
  for (; outputs > 0; --outputs) output();
}

template <class T, bool kRelu, size_t... kIndex>
constexpr std::array<TileBlock<T>, sizeof...(kIndex)> few_blocks(std::index_sequence<kIndex...>) {
  return {few_inputs<T, static_cast<int>(kIndex) + 1, kRelu>...};
}

template <class T>
class StepList {
 public:
  explicit StepList(Packed<T>& net) : net_(net), steps_(net.steps) { steps_.clear(); }

  void make() {
    const size_t last = net_.layers.size() - 1;
    Place from = Place::outside;
    for (size_t i = 0; i <= last; ++i) {
      const PackedLayer<T>& layer = net_.layers[i];
      const bool thin = layer.thin_weights != nullptr;
      const Place values = half(i + 1);
      if (thin) ++i;
      const Place to = i == last ? Place::outside : half(i + 1);
      if (thin) {
        add_two(i - 1, from, values, to);
      } else {
        const bool defers =
            i < last && net_.layers[i + 1].thin_weights == nullptr && defers_tanh(layer, net_.layers[i + 1]);
        add(layer, from, to, defers);
      }
      from = to;
    }
  }

 private:
  static constexpr size_t kAll = std::numeric_limits<size_t>::max();

  static Place half(size_t i) { return i % 2 == 0 ? Place::half0 : Place::half1; }

  void activate_rows(const PackedLayer<T>& layer, Place to, size_t row, size_t rows) {
    steps_.push_back({.activation = activation_pass<T>(layer.activation),
                      .to = to,
                      .alpha = layer.alpha,
                      .row = row,
                      .rows = rows,
                      .fetches = 0});
  }

  void add_two(size_t i, Place from, Place values, Place to) {
    const PackedLayer<T>&layer = net_.layers[i], &next = net_.layers[i + 1];
    steps_.push_back({.two_layers = thin_block<T, false>(layer, next),
                      .from = from,
                      .values = values,
                      .to = to,
                      .relu = next.activation == ActivationKind::relu,
                      .fetches = layer.tile_blocks.blocks + 1,
                      .layer = i});
    if (activation_pass<T>(next.activation) != nullptr) activate_rows(next, to, 0, next.outputs);
    ready_ = kAll;
  }

  // Inputs from row ready_ on are sums whose tanh is still to be taken. `defers`: so may outputs be after the call, but
  // for those beside whose tanh there is a later block to be summed.
  void add(const PackedLayer<T>& layer, Place from, Place to, bool defers) {
    constexpr size_t kRowBytes = 2 * hn::MaxLanes(Register<T>()) * sizeof(T);
    const bool relu = layer.activation == ActivationKind::relu;
    const bool activates = activation_pass<T>(layer.activation) != nullptr;
    if (layer.few_weights != nullptr && ready_ >= layer.inputs) return add_few(layer, from, to, defers);
    const size_t blocks = layer.tile_blocks.blocks;
    const T* w = layer.tile_weights;
    size_t row = 0, done = 0;  // outputs there are, and those with their activation
    for (size_t block = 0; block < blocks; ++block) {
      const size_t outputs = layer.tile_blocks[block];
      StripStep<T> step{.from = from, .to = to, .row = row, .rows = layer.inputs, .weights = w};
      if (block == 0 && ready_ < layer.inputs) {
        take_tanh(step, outputs, from, ready_, layer.inputs - ready_);
      } else if (defers && outputs <= kTanhOutputs && row > done) {
        const size_t rows = std::min(row - done, layer.inputs);
        take_tanh(step, outputs, to, done, rows);
        done += rows;
      } else {
        step.products = kTileBlocks<T>[relu][1][outputs - 1];
      }
      steps_.push_back(step);
      w += (1 + layer.inputs) * outputs;
      row += outputs;
      if (activates && !defers && (block + 1 == blocks || (row - done) * kRowBytes >= kMostRawBytes)) {
        activate_rows(layer, to, done, row - done);
        done = row;
      }
    }
    ready_ = defers ? done : kAll;
  }

  // Of inputs that are all values.
  void add_few(const PackedLayer<T>& layer, Place from, Place to, bool defers) {
    steps_.push_back({.products = kFew[layer.activation == ActivationKind::relu][layer.inputs - 1],
                      .from = from,
                      .to = to,
                      .rows = layer.outputs,
                      .weights = layer.few_weights});
    if (!defers && activation_pass<T>(layer.activation) != nullptr) activate_rows(layer, to, 0, layer.outputs);
    ready_ = defers ? 0 : kAll;
  }

  static void take_tanh(StripStep<T>& step, size_t outputs, Place values, size_t first, size_t count) {
    step.products_beside_tanh = kTanhBlocks[outputs - 1];
    step.values = values;
    step.first_value = first;
    step.value_count = count;
    step.lead = values == step.from ? tanh_lead(first, count) : 0;
  }

  static constexpr auto kTanhBlocks = tanh_blocks<T>(TileSizes());
  static constexpr std::array<TileBlock<T>, kFewInputs> kFew[2] = {
      few_blocks<T, false>(std::make_index_sequence<kFewInputs>()),
      few_blocks<T, true>(std::make_index_sequence<kFewInputs>())};

  Packed<T>& net_;
  std::vector<StripStep<T>>& steps_;
  size_t ready_ = kAll;
};

template <class T>
void make_steps(Packed<T>& net) {
  StepList<T>(net).make();
}

// Of kStrips strips, each step for one after another: what one waits for at a step's end the next one's numbers fill.
// Their inputs, outputs and halves lie `apart` numbers from each other.
template <int kStrips, class T, class A>
void run_steps(const Packed<T>& net, const T* in, size_t in_stride, T* out, size_t out_stride, T* const halves[2],
               size_t apart, A& ahead) {
  const size_t stride = 2 * hn::Lanes(Register<T>());
  const T* const sources[] = {halves[0], halves[1], in};
  T* const targets[] = {halves[0], halves[1], out};
  const size_t source_strides[] = {stride, stride, in_stride}, target_strides[] = {stride, stride, out_stride};
  for (const StripStep<T>& step : net.steps) {
    for (size_t i = 0; i < step.fetches; ++i) ahead.fetch();
    const auto from = static_cast<size_t>(step.from), to = static_cast<size_t>(step.to);
    const size_t x_stride = source_strides[from], y_stride = target_strides[to];
    const T* x = sources[from];
    T* y = targets[to] + step.row * y_stride;
    T* values = targets[static_cast<size_t>(step.values)] + step.first_value * stride;
    const auto for_strips = [&](auto run) HWY_ATTR __attribute__((always_inline)) {
      run();
      for (int s = 1; s < kStrips; ++s) {
        x += apart;
        y += apart;
        values += apart;
        run();
      }
    };
    if (step.products != nullptr) {
      for_strips([&]() HWY_ATTR { step.products(x, x_stride, step.rows, step.weights, y, y_stride); });
    } else if (step.activation != nullptr) {
      for_strips([&]() HWY_ATTR { step.activation(y, step.rows, y_stride, 2, step.alpha); });
    } else if (step.products_beside_tanh != nullptr) {
      size_t lead = step.lead, count = step.value_count;
      if (kStrips > 1 && lead > 0) {  // of all strips before the products of any: none waits for its own
        for (size_t s = 0; s < kStrips; ++s) {
          apply_activation<T, ActivationKind::tanh>(values + s * apart, lead, stride, 2, T(0));
        }
        values += lead * stride;
        count -= lead;
        lead = 0;
      }
      for_strips([&]() HWY_ATTR {
        step.products_beside_tanh(x, x_stride, step.rows, step.weights, y, y_stride, values, stride, count, lead);
      });
    } else {
      for_strips([&]() HWY_ATTR {
        step.two_layers(net.layers[step.layer], {x, x_stride, values, stride, y, y_stride}, step.relu);
      });
    }
  }
}
