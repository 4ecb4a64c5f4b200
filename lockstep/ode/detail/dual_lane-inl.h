// Lanes that carry a derivative along: a value and its slope in one direction. No include guard: included once a target
// inside its namespace, with LOCKSTEP_LANE_FN defined.

// A lane type over L (the operations that right-hand sides use). The value has L's bits; the slope of an operation
// rounded once is its exact derivative, rounded in the order written here.
template <class Value>
struct DualLane {
  using L = Value;
  using T = typename L::T;
  struct V {
    LOCKSTEP_LANE_FN V() {}
    LOCKSTEP_LANE_FN V(typename L::V a, typename L::V b) : value(a), slope(b) {}
    typename L::V value, slope;
  };

  static LOCKSTEP_LANE_FN V set(T x) { return V(L::set(x), L::zero()); }
  static LOCKSTEP_LANE_FN V zero() { return V(L::zero(), L::zero()); }
  static LOCKSTEP_LANE_FN V add(V a, V b) { return V(L::add(a.value, b.value), L::add(a.slope, b.slope)); }
  static LOCKSTEP_LANE_FN V sub(V a, V b) { return V(L::sub(a.value, b.value), L::sub(a.slope, b.slope)); }
  static LOCKSTEP_LANE_FN V neg(V a) { return V(L::neg(a.value), L::neg(a.slope)); }
  static LOCKSTEP_LANE_FN V mul(V a, V b) {
    return V(L::mul(a.value, b.value), L::fma(a.value, b.slope, L::mul(a.slope, b.value)));
  }
  static LOCKSTEP_LANE_FN V div(V a, V b) {  // (a' - (a/b) b') / b
    const typename L::V q = L::div(a.value, b.value);
    return V(q, L::div(L::nfma(q, b.slope, a.slope), b.value));
  }
  static LOCKSTEP_LANE_FN V sqrt(V a) {
    const typename L::V root = L::sqrt(a.value);
    return V(root, L::div(a.slope, L::add(root, root)));
  }
  static LOCKSTEP_LANE_FN V fma(V a, V b, V c) {
    return V(L::fma(a.value, b.value, c.value), L::fma(a.value, b.slope, L::fma(a.slope, b.value, c.slope)));
  }
  static LOCKSTEP_LANE_FN V nfma(V a, V b, V c) {
    return V(L::nfma(a.value, b.value, c.value), L::nfma(a.value, b.slope, L::nfma(a.slope, b.value, c.slope)));
  }
  static LOCKSTEP_LANE_FN V fms(V a, V b, V c) {
    return V(L::fms(a.value, b.value, c.value), L::fma(a.value, b.slope, L::fms(a.slope, b.value, c.slope)));
  }
  static LOCKSTEP_LANE_FN V sin(V a) {
    return V(systems::lane_sin<L>(a.value), L::mul(systems::lane_cos<L>(a.value), a.slope));
  }
  static LOCKSTEP_LANE_FN V cos(V a) {
    return V(systems::lane_cos<L>(a.value), L::neg(L::mul(systems::lane_sin<L>(a.value), a.slope)));
  }
};
