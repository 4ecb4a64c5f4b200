! Lockstep from Fortran: trained nets evaluated in place on the host program's arrays, in any layout, without copies. Fortran
! 2008, and for lockstep_array the pointer arguments of 2018's C interoperability (gfortran 9 or newer).
!
!   use lockstep
!   type(lockstep_model) :: model
!   type(lockstep_plan) :: plan
!   call model%load('net.safetensors')
!   call plan%compile(model)
!   call plan%evaluate(temperature, flux, feature_dimension=2)   ! temperature(column, level), flux(column, interface)
!
! Arrays are taken as they are: sections with strides too. Each procedure that can fail has the optional arguments stat
! (an integer, lockstep_ok when all went well) and errmsg (a string that takes what was found, what was expected, what
! to do; untouched when all went well). Without stat, a failure stops the program with that message, as in allocate. A
! plan is immutable: any number of threads may evaluate one at once. Assignment copies the handle: free each once.
module lockstep
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  private
  public :: lockstep_model, lockstep_plan, lockstep_device_plan, lockstep_device_array, lockstep_array, lockstep_version

  ! Status codes, as in lockstep.h.
  integer, parameter, public :: lockstep_ok = 0, lockstep_invalid_argument = 1, lockstep_bad_model = 2
  integer, parameter, public :: lockstep_bad_file = 3, lockstep_unsupported = 4, lockstep_cancelled = 5
  integer, parameter, public :: lockstep_out_of_memory = 6, lockstep_internal = 7
  ! Precision of a plan's arithmetic and arrays.
  integer, parameter, public :: lockstep_float32 = 0, lockstep_float64 = 1
  ! Of a net x -> y, the net that takes x and x_dot and gives y and y_dot = J x_dot; takes x and y_bar and gives y and
  ! x_bar = J^T y_bar; takes x and gives y and J by rows, [output][input].
  integer, parameter, public :: lockstep_jvp = 0, lockstep_vjp = 1, lockstep_jacobian = 2

  type :: lockstep_model
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: load => model_load
    procedure :: derivative_of => model_derivative_of
    procedure :: inputs => model_inputs
    procedure :: outputs => model_outputs
    procedure :: input_name => model_input_name
    procedure :: output_name => model_output_name
    procedure :: input_unit => model_input_unit
    procedure :: output_unit => model_output_unit
    procedure :: input_range => model_input_range
    procedure :: output_range => model_output_range
    procedure :: input_ports => model_input_ports
    procedure :: output_ports => model_output_ports
    procedure :: free => model_free
  end type

  type :: lockstep_plan
    private
    type(c_ptr) :: handle = c_null_ptr
    integer :: input_count = 0, output_count = 0
  contains
    procedure :: compile => plan_compile
    procedure :: load => plan_load
    procedure :: inputs => plan_inputs
    procedure :: outputs => plan_outputs
    procedure :: description => plan_description
    ! Nets of several ports: how many, and each one's name and features, counted from 1 ('' and 0 beyond).
    procedure :: input_ports => plan_input_ports
    procedure :: output_ports => plan_output_ports
    procedure :: input_port_name => plan_input_port_name
    procedure :: output_port_name => plan_output_port_name
    ! input_port(name [, stat] [, errmsg]), output_port: which one has that name, for arrays in their order, which another
    ! export of the net may change; 0 with a stat where none has. input_port_features(i), output_port_features(i)
    procedure :: input_port => plan_input_port
    procedure :: output_port => plan_output_port
    procedure :: input_port_features => plan_input_port_features
    procedure :: output_port_features => plan_output_port_features
    procedure :: free => plan_free
    ! evaluate(x, y [, feature_dimension] [, stat] [, errmsg]): y = net(x) sample by sample. Of rank 1, one sample:
    ! x(feature). Of rank 2 to 4, features lie along feature_dimension (1 by default), the other dimensions count
    ! samples and must agree between x and y. x and y may not overlap, in any of their samples, unless they are the same
    ! array section: an error. (Of rank 4 with features last they may not lie side by side in one array either.)
    procedure, private :: evaluate_f32_1, evaluate_f32_2, evaluate_f32_3, evaluate_f32_4
    procedure, private :: evaluate_f64_1, evaluate_f64_2, evaluate_f64_3, evaluate_f64_4
    generic :: evaluate => evaluate_f32_1, evaluate_f32_2, evaluate_f32_3, evaluate_f32_4, &
                           evaluate_f64_1, evaluate_f64_2, evaluate_f64_3, evaluate_f64_4
    ! jvp(x, x_dot, y_dot): y_dot = J x_dot, J being the Jacobian of the net at x. vjp(x, y_bar, x_bar): x_bar = J^T y_bar.
    ! Ranks 1 and 2, arguments and rules as for evaluate. The plan must be compiled with derivatives=.true. or loaded.
    procedure, private :: jvp_f32_1, jvp_f32_2, jvp_f64_1, jvp_f64_2, vjp_f32_1, vjp_f32_2, vjp_f64_1, vjp_f64_2
    generic :: jvp => jvp_f32_1, jvp_f32_2, jvp_f64_1, jvp_f64_2
    generic :: vjp => vjp_f32_1, vjp_f32_2, vjp_f64_1, vjp_f64_2
    ! jacobian(x, jac [, y] [, feature_dimension] [, stat] [, errmsg]): jac = J whole, the derivative of each output by each
    ! input, and y = net(x) where it is given. x(input): jac(output, input). x(input, sample): jac(output, input, sample);
    ! with feature_dimension=2, x(sample, input): jac(sample, output, input). jac may overlap neither x nor y.
    procedure, private :: jacobian_f32_1, jacobian_f32_2, jacobian_f64_1, jacobian_f64_2
    generic :: jacobian => jacobian_f32_1, jacobian_f32_2, jacobian_f64_1, jacobian_f64_2
    ! The same for nets of several ports, with a lockstep_array for each port in the order of the plan:
    !   call plan%evaluate_ports([lockstep_array(state), lockstep_array(forcing)], [lockstep_array(flux, 2)])
    ! jvp_ports(x, x_dot, y_dot), vjp_ports(x, y_bar, x_bar).
    procedure :: evaluate_ports => plan_evaluate_ports
    procedure :: jvp_ports => plan_jvp_ports
    procedure :: vjp_ports => plan_vjp_ports
  end type

  ! An array of the host's as one port of a net: where it lies, no copy. lockstep_array(a [, feature_dimension]) for a of
  ! rank 1 (one sample) or 2, real32 or real64; features lie along the first dimension unless said otherwise. a is a
  ! pointer or has the attribute target, which compilers insist on: an array without it might be a copy that is gone when
  ! the net is evaluated. It may be a section, or a component of an array of derived type: points%temperature.
  type, bind(c) :: lockstep_array
    private
    type(c_ptr) :: data = c_null_ptr
    integer(c_intptr_t) :: sample_stride = 0, feature_stride = 1
    integer(c_int) :: samples = 0, features = 0, precision = lockstep_float32  ! samples below 0: no array
    integer(c_int) :: feature_dimension = 1  ! as given
    integer(c_intptr_t) :: odd_bytes = 0     ! a step between neighbours that is no whole number of elements
  end type
  interface lockstep_array
    module procedure array_f32_1, array_f32_2, array_f64_1, array_f64_2
  end interface

  ! A net on an NVIDIA GPU, for arrays that lie there: call plan%compile(model [, precision] [, device]), then
  !   call plan%enqueue(stream, samples, c_devloc(in), 1, samples, c_devloc(out), 1, samples)
  ! queues out = net(in) on a CUDA stream and returns (c_null_ptr: the default stream). Addresses are of the device, as
  ! c_devloc, acc_deviceptr or c_loc within host_data give them; after each, how far apart samples and features lie, in
  ! numbers. The status is lockstep_unsupported where there is no CUDA component, driver or device. A net of several ports
  ! takes an array for each, in the order of input_port_name(i) and output_port_name(i):
  !   call plan%enqueue_ports(stream, samples, [lockstep_device_array(c_devloc(state), 1, samples)], [...])
  type :: lockstep_device_plan
    private
    type(c_ptr) :: handle = c_null_ptr
    integer :: precision = lockstep_float32
  contains
    procedure :: compile => device_plan_compile
    procedure :: inputs => device_plan_inputs
    procedure :: outputs => device_plan_outputs
    procedure :: input_ports => device_plan_input_ports
    procedure :: output_ports => device_plan_output_ports
    procedure :: input_port => device_plan_input_port
    procedure :: output_port => device_plan_output_port
    procedure :: input_port_name => device_plan_input_port_name
    procedure :: output_port_name => device_plan_output_port_name
    procedure :: enqueue => device_plan_enqueue
    procedure :: enqueue_ports => device_plan_enqueue_ports
    procedure :: free => device_plan_free
  end type

  ! An array on the device as one port of a net: its address, and how far apart samples and features lie, in numbers.
  type, bind(c) :: lockstep_device_array
    type(c_ptr) :: data
    integer(c_intptr_t) :: sample_stride, feature_stride
  end type

  type, bind(c) :: device_options
    integer(c_size_t) :: size
    integer(c_int) :: precision, device
  end type

  type, bind(c) :: port_array
    type(c_ptr) :: data
    integer(c_intptr_t) :: sample_stride, feature_stride
  end type
  type, bind(c) :: port_text
    type(c_ptr) :: name
    integer(c_size_t) :: features, first_feature
  end type

  type, bind(c) :: load_options
    integer(c_size_t) :: size
    type(c_ptr) :: activations, hidden_activation
  end type
  type, bind(c) :: compile_options
    integer(c_size_t) :: size
    integer(c_int) :: precision
    type(c_ptr) :: cpu_target
    integer(c_int) :: derivatives
  end type
  type, bind(c) :: feature_text
    type(c_ptr) :: name, unit
    real(c_double) :: minimum, maximum
  end type

  interface
    integer(c_int) function c_device_compile(model, options, plan) bind(c, name='lockstep_device_compile')
      import
      type(c_ptr), value :: model
      type(device_options), intent(in) :: options
      type(c_ptr), intent(inout) :: plan
    end function
    subroutine c_device_plan_free(plan) bind(c, name='lockstep_device_plan_free')
      import
      type(c_ptr), value :: plan
    end subroutine
    integer(c_size_t) function c_device_plan_inputs(plan) bind(c, name='lockstep_device_plan_inputs')
      import
      type(c_ptr), value :: plan
    end function
    integer(c_size_t) function c_device_plan_outputs(plan) bind(c, name='lockstep_device_plan_outputs')
      import
      type(c_ptr), value :: plan
    end function
    integer(c_int) function c_enqueue_f32(plan, stream, samples, in, in_sample, in_feature, out, out_sample, out_feature) &
        bind(c, name='lockstep_enqueue_f32')
      import
      type(c_ptr), value :: plan, stream, in, out
      integer(c_size_t), value :: samples
      integer(c_intptr_t), value :: in_sample, in_feature, out_sample, out_feature
    end function
    integer(c_int) function c_enqueue_f64(plan, stream, samples, in, in_sample, in_feature, out, out_sample, out_feature) &
        bind(c, name='lockstep_enqueue_f64')
      import
      type(c_ptr), value :: plan, stream, in, out
      integer(c_size_t), value :: samples
      integer(c_intptr_t), value :: in_sample, in_feature, out_sample, out_feature
    end function
    integer(c_size_t) function c_device_plan_ports(plan, direction) bind(c, name='lockstep_device_plan_ports')
      import
      type(c_ptr), value :: plan
      integer(c_int), value :: direction
    end function
    integer(c_int) function c_device_plan_port(plan, direction, i, port) bind(c, name='lockstep_device_plan_port')
      import
      type(c_ptr), value :: plan
      integer(c_int), value :: direction
      integer(c_size_t), value :: i
      type(port_text), intent(out) :: port
    end function
    integer(c_int) function c_enqueue_ports_f32(plan, stream, samples, x, nx, y, ny) &
        bind(c, name='lockstep_enqueue_ports_f32')
      import
      type(c_ptr), value :: plan, stream
      integer(c_size_t), value :: samples, nx, ny
      type(lockstep_device_array), intent(in) :: x(*), y(*)
    end function
    integer(c_int) function c_enqueue_ports_f64(plan, stream, samples, x, nx, y, ny) &
        bind(c, name='lockstep_enqueue_ports_f64')
      import
      type(c_ptr), value :: plan, stream
      integer(c_size_t), value :: samples, nx, ny
      type(lockstep_device_array), intent(in) :: x(*), y(*)
    end function
    integer(c_int) function c_model_load(path, options, model) bind(c, name='lockstep_model_load')
      import
      character(kind=c_char), intent(in) :: path(*)
      type(load_options), intent(in) :: options
      type(c_ptr), intent(inout) :: model
    end function
    integer(c_int) function c_model_derivative(model, which, derivative) bind(c, name='lockstep_model_derivative')
      import
      type(c_ptr), value :: model
      integer(c_int), value :: which
      type(c_ptr), intent(inout) :: derivative
    end function
    subroutine c_model_free(model) bind(c, name='lockstep_model_free')
      import
      type(c_ptr), value :: model
    end subroutine
    integer(c_size_t) function c_model_inputs(model) bind(c, name='lockstep_model_inputs')
      import
      type(c_ptr), value :: model
    end function
    integer(c_size_t) function c_model_outputs(model) bind(c, name='lockstep_model_outputs')
      import
      type(c_ptr), value :: model
    end function
    integer(c_int) function c_model_input(model, index, feature) bind(c, name='lockstep_model_input')
      import
      type(c_ptr), value :: model
      integer(c_size_t), value :: index
      type(feature_text), intent(out) :: feature
    end function
    integer(c_int) function c_model_output(model, index, feature) bind(c, name='lockstep_model_output')
      import
      type(c_ptr), value :: model
      integer(c_size_t), value :: index
      type(feature_text), intent(out) :: feature
    end function
    integer(c_int) function c_compile(model, options, plan) bind(c, name='lockstep_compile')
      import
      type(c_ptr), value :: model
      type(compile_options), intent(in) :: options
      type(c_ptr), intent(inout) :: plan
    end function
    integer(c_int) function c_plan_load(path, plan) bind(c, name='lockstep_plan_load')
      import
      character(kind=c_char), intent(in) :: path(*)
      type(c_ptr), intent(inout) :: plan
    end function
    subroutine c_plan_free(plan) bind(c, name='lockstep_plan_free')
      import
      type(c_ptr), value :: plan
    end subroutine
    integer(c_size_t) function c_plan_inputs(plan) bind(c, name='lockstep_plan_inputs')
      import
      type(c_ptr), value :: plan
    end function
    integer(c_size_t) function c_plan_outputs(plan) bind(c, name='lockstep_plan_outputs')
      import
      type(c_ptr), value :: plan
    end function
    type(c_ptr) function c_plan_description(plan) bind(c, name='lockstep_plan_description')
      import
      type(c_ptr), value :: plan
    end function
    integer(c_int) function c_evaluate_f32(plan, samples, x, xs, xf, y, ys, yf, workspace, bytes) &
        bind(c, name='lockstep_evaluate_f32')
      import
      type(c_ptr), value :: plan, x, y, workspace
      integer(c_size_t), value :: samples, bytes
      integer(c_intptr_t), value :: xs, xf, ys, yf
    end function
    integer(c_int) function c_evaluate_f64(plan, samples, x, xs, xf, y, ys, yf, workspace, bytes) &
        bind(c, name='lockstep_evaluate_f64')
      import
      type(c_ptr), value :: plan, x, y, workspace
      integer(c_size_t), value :: samples, bytes
      integer(c_intptr_t), value :: xs, xf, ys, yf
    end function
    integer(c_int) function c_evaluate_slices_f32(plan, slices, samples, x, xt, xs, xf, y, yt, ys, yf, workspace, bytes) &
        bind(c, name='lockstep_evaluate_slices_f32')
      import
      type(c_ptr), value :: plan, x, y, workspace
      integer(c_size_t), value :: slices, samples, bytes
      integer(c_intptr_t), value :: xt, xs, xf, yt, ys, yf
    end function
    integer(c_int) function c_evaluate_slices_f64(plan, slices, samples, x, xt, xs, xf, y, yt, ys, yf, workspace, bytes) &
        bind(c, name='lockstep_evaluate_slices_f64')
      import
      type(c_ptr), value :: plan, x, y, workspace
      integer(c_size_t), value :: slices, samples, bytes
      integer(c_intptr_t), value :: xt, xs, xf, yt, ys, yf
    end function
    integer(c_int) function c_jvp_f32(plan, samples, x, xs, xf, v, vs, vf, y, ys, yf, w, ws, wf, workspace, bytes) &
        bind(c, name='lockstep_jvp_f32')
      import
      type(c_ptr), value :: plan, x, v, y, w, workspace
      integer(c_size_t), value :: samples, bytes
      integer(c_intptr_t), value :: xs, xf, vs, vf, ys, yf, ws, wf
    end function
    integer(c_int) function c_jvp_f64(plan, samples, x, xs, xf, v, vs, vf, y, ys, yf, w, ws, wf, workspace, bytes) &
        bind(c, name='lockstep_jvp_f64')
      import
      type(c_ptr), value :: plan, x, v, y, w, workspace
      integer(c_size_t), value :: samples, bytes
      integer(c_intptr_t), value :: xs, xf, vs, vf, ys, yf, ws, wf
    end function
    integer(c_int) function c_vjp_f32(plan, samples, x, xs, xf, v, vs, vf, y, ys, yf, w, ws, wf, workspace, bytes) &
        bind(c, name='lockstep_vjp_f32')
      import
      type(c_ptr), value :: plan, x, v, y, w, workspace
      integer(c_size_t), value :: samples, bytes
      integer(c_intptr_t), value :: xs, xf, vs, vf, ys, yf, ws, wf
    end function
    integer(c_int) function c_vjp_f64(plan, samples, x, xs, xf, v, vs, vf, y, ys, yf, w, ws, wf, workspace, bytes) &
        bind(c, name='lockstep_vjp_f64')
      import
      type(c_ptr), value :: plan, x, v, y, w, workspace
      integer(c_size_t), value :: samples, bytes
      integer(c_intptr_t), value :: xs, xf, vs, vf, ys, yf, ws, wf
    end function
    integer(c_int) function c_jacobian_f32(plan, samples, x, xs, xf, y, ys, yf, jac, js, jo, ji, workspace, bytes) &
        bind(c, name='lockstep_jacobian_f32')
      import
      type(c_ptr), value :: plan, x, y, jac, workspace
      integer(c_size_t), value :: samples, bytes
      integer(c_intptr_t), value :: xs, xf, ys, yf, js, jo, ji
    end function
    integer(c_int) function c_jacobian_f64(plan, samples, x, xs, xf, y, ys, yf, jac, js, jo, ji, workspace, bytes) &
        bind(c, name='lockstep_jacobian_f64')
      import
      type(c_ptr), value :: plan, x, y, jac, workspace
      integer(c_size_t), value :: samples, bytes
      integer(c_intptr_t), value :: xs, xf, ys, yf, js, jo, ji
    end function
    integer(c_size_t) function c_model_ports(model, direction) bind(c, name='lockstep_model_ports')
      import
      type(c_ptr), value :: model
      integer(c_int), value :: direction
    end function
    integer(c_size_t) function c_plan_ports(plan, direction) bind(c, name='lockstep_plan_ports')
      import
      type(c_ptr), value :: plan
      integer(c_int), value :: direction
    end function
    integer(c_int) function c_plan_port(plan, direction, index, port) bind(c, name='lockstep_plan_port')
      import
      type(c_ptr), value :: plan
      integer(c_int), value :: direction
      integer(c_size_t), value :: index
      type(port_text), intent(out) :: port
    end function
    integer(c_int) function c_plan_port_index(plan, direction, name, index) bind(c, name='lockstep_plan_port_index')
      import
      type(c_ptr), value :: plan
      integer(c_int), value :: direction
      character(kind=c_char), intent(in) :: name(*)
      integer(c_size_t), intent(inout) :: index
    end function
    integer(c_int) function c_device_plan_port_index(plan, direction, name, index) &
        bind(c, name='lockstep_device_plan_port_index')
      import
      type(c_ptr), value :: plan
      integer(c_int), value :: direction
      character(kind=c_char), intent(in) :: name(*)
      integer(c_size_t), intent(inout) :: index
    end function
    integer(c_int) function c_evaluate_ports_f32(plan, samples, x, nx, y, ny, workspace, bytes) &
        bind(c, name='lockstep_evaluate_ports_f32')
      import
      type(c_ptr), value :: plan, workspace
      integer(c_size_t), value :: samples, nx, ny, bytes
      type(port_array), intent(in) :: x(*), y(*)
    end function
    integer(c_int) function c_jvp_ports_f32(plan, samples, x, v, y, w, nx, ny, workspace, bytes) &
        bind(c, name='lockstep_jvp_ports_f32')
      import
      type(c_ptr), value :: plan, y, workspace
      integer(c_size_t), value :: samples, nx, ny, bytes
      type(port_array), intent(in) :: x(*), v(*), w(*)
    end function
    integer(c_int) function c_vjp_ports_f32(plan, samples, x, v, y, w, nx, ny, workspace, bytes) &
        bind(c, name='lockstep_vjp_ports_f32')
      import
      type(c_ptr), value :: plan, y, workspace
      integer(c_size_t), value :: samples, nx, ny, bytes
      type(port_array), intent(in) :: x(*), v(*), w(*)
    end function
    integer(c_int) function c_evaluate_ports_f64(plan, samples, x, nx, y, ny, workspace, bytes) &
        bind(c, name='lockstep_evaluate_ports_f64')
      import
      type(c_ptr), value :: plan, workspace
      integer(c_size_t), value :: samples, nx, ny, bytes
      type(port_array), intent(in) :: x(*), y(*)
    end function
    integer(c_int) function c_jvp_ports_f64(plan, samples, x, v, y, w, nx, ny, workspace, bytes) &
        bind(c, name='lockstep_jvp_ports_f64')
      import
      type(c_ptr), value :: plan, y, workspace
      integer(c_size_t), value :: samples, nx, ny, bytes
      type(port_array), intent(in) :: x(*), v(*), w(*)
    end function
    integer(c_int) function c_vjp_ports_f64(plan, samples, x, v, y, w, nx, ny, workspace, bytes) &
        bind(c, name='lockstep_vjp_ports_f64')
      import
      type(c_ptr), value :: plan, y, workspace
      integer(c_size_t), value :: samples, nx, ny, bytes
      type(port_array), intent(in) :: x(*), v(*), w(*)
    end function
    type(c_ptr) function c_last_error() bind(c, name='lockstep_last_error')
      import
    end function
    type(c_ptr) function c_version() bind(c, name='lockstep_version')
      import
    end function
    integer(c_size_t) function c_strlen(text) bind(c, name='strlen')
      import
      type(c_ptr), value :: text
    end function
  end interface

contains

  ! "0.1.0"
  function lockstep_version() result(text)
    character(:), allocatable :: text
    text = from_c(c_version())
  end function

  ! Reads a model file. For safetensors that do not name their activations: one a layer ('tanh,tanh,linear'), or one
  ! for all layers but the last; others than a file's own are refused.
  subroutine model_load(self, path, activations, hidden_activation, stat, errmsg)
    class(lockstep_model), intent(inout) :: self
    character(*), intent(in) :: path
    character(*), intent(in), optional :: activations, hidden_activation
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(kind=c_char), target, allocatable :: all(:), hidden(:)
    type(load_options) :: options
    type(c_ptr) :: handle
    integer(c_int) :: status
    options = load_options(c_sizeof(options), c_null_ptr, c_null_ptr)
    if (present(activations)) then
      allocate (all, source=to_c(activations))
      options%activations = c_loc(all)
    end if
    if (present(hidden_activation)) then
      allocate (hidden, source=to_c(hidden_activation))
      options%hidden_activation = c_loc(hidden)
    end if
    status = c_model_load(to_c(path), options, handle)
    if (status == lockstep_ok) then
      call self%free()
      self%handle = handle
    end if
    call answer(status, stat, errmsg)
  end subroutine

  ! Becomes a derivative of `model`, lockstep_jvp, lockstep_vjp or lockstep_jacobian: a model of several ports, to be
  ! compiled as any, for a GPU too. May be `model` itself.
  subroutine model_derivative_of(self, model, which, stat, errmsg)
    class(lockstep_model), intent(inout) :: self
    type(lockstep_model), intent(in) :: model
    integer, intent(in) :: which
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: handle
    integer(c_int) :: status
    status = c_model_derivative(model%handle, int(which, c_int), handle)
    if (status == lockstep_ok) then
      call self%free()
      self%handle = handle
    end if
    call answer(status, stat, errmsg)
  end subroutine

  integer function model_inputs(self)
    class(lockstep_model), intent(in) :: self
    model_inputs = int(c_model_inputs(self%handle))
  end function

  integer function model_outputs(self)
    class(lockstep_model), intent(in) :: self
    model_outputs = int(c_model_outputs(self%handle))
  end function

  ! Name of the feature, counted from 1; '' where the file gives none or there is no such feature.
  function model_input_name(self, index) result(name)
    class(lockstep_model), intent(in) :: self
    integer, intent(in) :: index
    character(:), allocatable :: name
    type(feature_text) :: feature
    name = ''
    if (c_model_input(self%handle, int(index - 1, c_size_t), feature) == lockstep_ok) name = from_c(feature%name)
  end function

  function model_output_name(self, index) result(name)
    class(lockstep_model), intent(in) :: self
    integer, intent(in) :: index
    character(:), allocatable :: name
    type(feature_text) :: feature
    name = ''
    if (c_model_output(self%handle, int(index - 1, c_size_t), feature) == lockstep_ok) name = from_c(feature%name)
  end function

  ! Unit of the feature, as the name.
  function model_input_unit(self, index) result(unit)
    class(lockstep_model), intent(in) :: self
    integer, intent(in) :: index
    character(:), allocatable :: unit
    type(feature_text) :: feature
    unit = ''
    if (c_model_input(self%handle, int(index - 1, c_size_t), feature) == lockstep_ok) unit = from_c(feature%unit)
  end function

  function model_output_unit(self, index) result(unit)
    class(lockstep_model), intent(in) :: self
    integer, intent(in) :: index
    character(:), allocatable :: unit
    type(feature_text) :: feature
    unit = ''
    if (c_model_output(self%handle, int(index - 1, c_size_t), feature) == lockstep_ok) unit = from_c(feature%unit)
  end function

  ! Range of the feature in the data that the net was trained on; -huge to huge where the file gives none or there is no
  ! such feature. Evaluation does not look at it.
  subroutine model_input_range(self, index, minimum, maximum)
    class(lockstep_model), intent(in) :: self
    integer, intent(in) :: index
    real(c_double), intent(out) :: minimum, maximum
    type(feature_text) :: feature
    if (c_model_input(self%handle, int(index - 1, c_size_t), feature) /= lockstep_ok) feature = unknown_feature()
    minimum = max(feature%minimum, -huge(minimum))
    maximum = min(feature%maximum, huge(maximum))
  end subroutine

  subroutine model_output_range(self, index, minimum, maximum)
    class(lockstep_model), intent(in) :: self
    integer, intent(in) :: index
    real(c_double), intent(out) :: minimum, maximum
    type(feature_text) :: feature
    if (c_model_output(self%handle, int(index - 1, c_size_t), feature) /= lockstep_ok) feature = unknown_feature()
    minimum = max(feature%minimum, -huge(minimum))
    maximum = min(feature%maximum, huge(maximum))
  end subroutine

  type(feature_text) function unknown_feature()
    unknown_feature = feature_text(c_null_ptr, c_null_ptr, -huge(1.0_c_double), huge(1.0_c_double))
  end function

  subroutine model_free(self)
    class(lockstep_model), intent(inout) :: self
    call c_model_free(self%handle)
    self%handle = c_null_ptr
  end subroutine

  ! Lowers the model for this machine: precision lockstep_float32 (default) or lockstep_float64, cpu_target 'avx512',
  ! 'avx2', 'neon' or 'scalar' (default: the best here; the bits do not depend on it).
  ! With derivatives=.true. it also serves jvp and vjp.
  subroutine plan_compile(self, model, precision, cpu_target, derivatives, stat, errmsg)
    class(lockstep_plan), intent(inout) :: self
    type(lockstep_model), intent(in) :: model
    integer, intent(in), optional :: precision
    character(*), intent(in), optional :: cpu_target
    logical, intent(in), optional :: derivatives
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(kind=c_char), target, allocatable :: target_name(:)
    type(compile_options) :: options
    type(c_ptr) :: handle
    integer(c_int) :: status
    if (.not. loaded(model, stat, errmsg)) return
    options = compile_options(c_sizeof(options), int(lockstep_float32, c_int), c_null_ptr, 0_c_int)
    if (present(precision)) options%precision = int(precision, c_int)
    if (present(cpu_target)) then
      allocate (target_name, source=to_c(cpu_target))
      options%cpu_target = c_loc(target_name)
    end if
    if (present(derivatives)) options%derivatives = merge(1_c_int, 0_c_int, derivatives)
    status = c_compile(model%handle, options, handle)
    if (status == lockstep_ok) call take(self, handle)
    call answer(status, stat, errmsg)
  end subroutine

  logical function loaded(model, stat, errmsg)
    type(lockstep_model), intent(in) :: model
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    loaded = c_associated(model%handle)
    if (.not. loaded) call refuse('model: found none, expected a loaded one; call model%load first and look at its stat', &
                                  stat, errmsg)
  end function

  ! Loads a plan file made by `lockstep compile`: for the best instruction set of this machine, or for the one that was
  ! named there, which this machine must have.
  subroutine plan_load(self, path, stat, errmsg)
    class(lockstep_plan), intent(inout) :: self
    character(*), intent(in) :: path
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: handle
    integer(c_int) :: status
    status = c_plan_load(to_c(path), handle)
    if (status == lockstep_ok) call take(self, handle)
    call answer(status, stat, errmsg)
  end subroutine

  subroutine take(self, handle)
    class(lockstep_plan), intent(inout) :: self
    type(c_ptr), intent(in) :: handle
    call self%free()
    self%handle = handle
    self%input_count = int(c_plan_inputs(handle))
    self%output_count = int(c_plan_outputs(handle))
  end subroutine

  integer function plan_inputs(self)
    class(lockstep_plan), intent(in) :: self
    plan_inputs = self%input_count
  end function

  integer function plan_outputs(self)
    class(lockstep_plan), intent(in) :: self
    plan_outputs = self%output_count
  end function

  ! Which kernel was chosen.
  function plan_description(self) result(text)
    class(lockstep_plan), intent(in) :: self
    character(:), allocatable :: text
    text = from_c(c_plan_description(self%handle))
  end function

  subroutine plan_free(self)
    class(lockstep_plan), intent(inout) :: self
    call c_plan_free(self%handle)
    self%handle = c_null_ptr
    self%input_count = 0
    self%output_count = 0
  end subroutine

  subroutine device_plan_compile(self, model, precision, device, stat, errmsg)
    class(lockstep_device_plan), intent(inout) :: self
    type(lockstep_model), intent(in) :: model
    integer, intent(in), optional :: precision, device
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(device_options) :: options
    type(c_ptr) :: handle
    integer(c_int) :: status
    if (.not. loaded(model, stat, errmsg)) return
    options = device_options(c_sizeof(options), int(lockstep_float32, c_int), 0_c_int)
    if (present(precision)) options%precision = int(precision, c_int)
    if (present(device)) options%device = int(device, c_int)
    status = c_device_compile(model%handle, options, handle)
    if (status == lockstep_ok) then
      call self%free()
      self%handle = handle
      self%precision = int(options%precision)
    end if
    call answer(status, stat, errmsg)
  end subroutine

  integer function device_plan_inputs(self)
    class(lockstep_device_plan), intent(in) :: self
    device_plan_inputs = int(c_device_plan_inputs(self%handle))
  end function

  integer function device_plan_outputs(self)
    class(lockstep_device_plan), intent(in) :: self
    device_plan_outputs = int(c_device_plan_outputs(self%handle))
  end function

  subroutine device_plan_free(self)
    class(lockstep_device_plan), intent(inout) :: self
    call c_device_plan_free(self%handle)
    self%handle = c_null_ptr
  end subroutine

  subroutine device_plan_enqueue(self, stream, samples, in, in_sample_stride, in_feature_stride, &
                                 out, out_sample_stride, out_feature_stride, stat, errmsg)
    class(lockstep_device_plan), intent(in) :: self
    type(c_ptr), intent(in) :: stream, in, out
    integer, intent(in) :: samples, in_sample_stride, in_feature_stride, out_sample_stride, out_feature_stride
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_intptr_t) :: strides(4)
    integer(c_int) :: status
    strides = [in_sample_stride, in_feature_stride, out_sample_stride, out_feature_stride]
    if (self%precision == lockstep_float64) then
      status = c_enqueue_f64(self%handle, stream, int(samples, c_size_t), in, strides(1), strides(2), &
                             out, strides(3), strides(4))
    else
      status = c_enqueue_f32(self%handle, stream, int(samples, c_size_t), in, strides(1), strides(2), &
                             out, strides(3), strides(4))
    end if
    call answer(status, stat, errmsg)
  end subroutine

  integer function device_plan_input_ports(self)
    class(lockstep_device_plan), intent(in) :: self
    device_plan_input_ports = int(c_device_plan_ports(self%handle, 0_c_int))
  end function

  integer function device_plan_output_ports(self)
    class(lockstep_device_plan), intent(in) :: self
    device_plan_output_ports = int(c_device_plan_ports(self%handle, 1_c_int))
  end function

  integer function device_plan_input_port(self, name, stat, errmsg) result(port)
    class(lockstep_device_plan), intent(in) :: self
    character(*), intent(in) :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_size_t) :: index
    integer(c_int) :: status
    port = 0
    status = c_device_plan_port_index(self%handle, 0_c_int, to_c(name), index)
    if (status == lockstep_ok) port = int(index) + 1
    call answer(status, stat, errmsg)
  end function

  integer function device_plan_output_port(self, name, stat, errmsg) result(port)
    class(lockstep_device_plan), intent(in) :: self
    character(*), intent(in) :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_size_t) :: index
    integer(c_int) :: status
    port = 0
    status = c_device_plan_port_index(self%handle, 1_c_int, to_c(name), index)
    if (status == lockstep_ok) port = int(index) + 1
    call answer(status, stat, errmsg)
  end function

  function device_plan_input_port_name(self, i) result(name)
    class(lockstep_device_plan), intent(in) :: self
    integer, intent(in) :: i
    character(:), allocatable :: name
    name = device_port_name(self, 0_c_int, i)
  end function

  function device_plan_output_port_name(self, i) result(name)
    class(lockstep_device_plan), intent(in) :: self
    integer, intent(in) :: i
    character(:), allocatable :: name
    name = device_port_name(self, 1_c_int, i)
  end function

  function device_port_name(self, direction, i) result(name)
    class(lockstep_device_plan), intent(in) :: self
    integer(c_int), intent(in) :: direction
    integer, intent(in) :: i
    character(:), allocatable :: name
    type(port_text) :: port
    name = ''
    if (i < 1) return
    if (c_device_plan_port(self%handle, direction, int(i - 1, c_size_t), port) == lockstep_ok) name = from_c(port%name)
  end function

  subroutine device_plan_enqueue_ports(self, stream, samples, in, out, stat, errmsg)
    class(lockstep_device_plan), intent(in) :: self
    type(c_ptr), intent(in) :: stream
    integer, intent(in) :: samples
    type(lockstep_device_array), intent(in) :: in(:), out(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: status
    if (self%precision == lockstep_float64) then
      status = c_enqueue_ports_f64(self%handle, stream, int(samples, c_size_t), in, size(in, kind=c_size_t), &
                                   out, size(out, kind=c_size_t))
    else
      status = c_enqueue_ports_f32(self%handle, stream, int(samples, c_size_t), in, size(in, kind=c_size_t), &
                                   out, size(out, kind=c_size_t))
    end if
    call answer(status, stat, errmsg)
  end subroutine

  subroutine evaluate_f32_1(self, x, y, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    real(c_float), intent(in), target :: x(:)
    real(c_float), intent(inout), target :: y(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (.not. fits(self, shape(x), 'y', shape(y), 1, stat, errmsg)) return
    call answer(c_evaluate_f32(self%handle, 1_c_size_t, c_loc(x(1)), 1_c_intptr_t, stride_f32_1(x), c_loc(y(1)), &
                               1_c_intptr_t, stride_f32_1(y), c_null_ptr, 0_c_size_t), stat, errmsg)
  end subroutine

  subroutine evaluate_f64_1(self, x, y, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    real(c_double), intent(in), target :: x(:)
    real(c_double), intent(inout), target :: y(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (.not. fits(self, shape(x), 'y', shape(y), 1, stat, errmsg)) return
    call answer(c_evaluate_f64(self%handle, 1_c_size_t, c_loc(x(1)), 1_c_intptr_t, stride_f64_1(x), c_loc(y(1)), &
                               1_c_intptr_t, stride_f64_1(y), c_null_ptr, 0_c_size_t), stat, errmsg)
  end subroutine

  subroutine evaluate_f32_2(self, x, y, feature_dimension, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    real(c_float), intent(in), target :: x(:, :)
    real(c_float), intent(inout), target :: y(:, :)
    integer, intent(in), optional :: feature_dimension
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer :: f, s
    integer(c_intptr_t) :: xs(2), ys(2)
    f = chosen(feature_dimension)
    if (.not. fits(self, shape(x), 'y', shape(y), f, stat, errmsg)) return
    s = 3 - f
    xs = [stride_f32_1(x(:, 1)), stride_f32_1(x(1, :))]
    ys = [stride_f32_1(y(:, 1)), stride_f32_1(y(1, :))]
    call answer(c_evaluate_f32(self%handle, size(x, s, c_size_t), c_loc(x(1, 1)), xs(s), xs(f), c_loc(y(1, 1)), &
                               ys(s), ys(f), c_null_ptr, 0_c_size_t), stat, errmsg)
  end subroutine

  subroutine evaluate_f64_2(self, x, y, feature_dimension, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    real(c_double), intent(in), target :: x(:, :)
    real(c_double), intent(inout), target :: y(:, :)
    integer, intent(in), optional :: feature_dimension
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer :: f, s
    integer(c_intptr_t) :: xs(2), ys(2)
    f = chosen(feature_dimension)
    if (.not. fits(self, shape(x), 'y', shape(y), f, stat, errmsg)) return
    s = 3 - f
    xs = [stride_f64_1(x(:, 1)), stride_f64_1(x(1, :))]
    ys = [stride_f64_1(y(:, 1)), stride_f64_1(y(1, :))]
    call answer(c_evaluate_f64(self%handle, size(x, s, c_size_t), c_loc(x(1, 1)), xs(s), xs(f), c_loc(y(1, 1)), &
                               ys(s), ys(f), c_null_ptr, 0_c_size_t), stat, errmsg)
  end subroutine

  ! Rank 3: slices along the last dimension that does not hold the features.
  subroutine evaluate_f32_3(self, x, y, feature_dimension, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    real(c_float), intent(in), target :: x(:, :, :)
    real(c_float), intent(inout), target :: y(:, :, :)
    integer, intent(in), optional :: feature_dimension
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer :: f, s, t
    integer(c_intptr_t) :: xs(3), ys(3)
    f = chosen(feature_dimension)
    if (.not. fits(self, shape(x), 'y', shape(y), f, stat, errmsg)) return
    s = merge(2, 1, f == 1)
    t = merge(2, 3, f == 3)
    xs = [stride_f32_1(x(:, 1, 1)), stride_f32_1(x(1, :, 1)), stride_f32_1(x(1, 1, :))]
    ys = [stride_f32_1(y(:, 1, 1)), stride_f32_1(y(1, :, 1)), stride_f32_1(y(1, 1, :))]
    call answer(c_evaluate_slices_f32(self%handle, size(x, t, c_size_t), size(x, s, c_size_t), c_loc(x(1, 1, 1)), xs(t), &
                                      xs(s), xs(f), c_loc(y(1, 1, 1)), ys(t), ys(s), ys(f), c_null_ptr, &
                                      0_c_size_t), stat, errmsg)
  end subroutine

  subroutine evaluate_f64_3(self, x, y, feature_dimension, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    real(c_double), intent(in), target :: x(:, :, :)
    real(c_double), intent(inout), target :: y(:, :, :)
    integer, intent(in), optional :: feature_dimension
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer :: f, s, t
    integer(c_intptr_t) :: xs(3), ys(3)
    f = chosen(feature_dimension)
    if (.not. fits(self, shape(x), 'y', shape(y), f, stat, errmsg)) return
    s = merge(2, 1, f == 1)
    t = merge(2, 3, f == 3)
    xs = [stride_f64_1(x(:, 1, 1)), stride_f64_1(x(1, :, 1)), stride_f64_1(x(1, 1, :))]
    ys = [stride_f64_1(y(:, 1, 1)), stride_f64_1(y(1, :, 1)), stride_f64_1(y(1, 1, :))]
    call answer(c_evaluate_slices_f64(self%handle, size(x, t, c_size_t), size(x, s, c_size_t), c_loc(x(1, 1, 1)), xs(t), &
                                      xs(s), xs(f), c_loc(y(1, 1, 1)), ys(t), ys(s), ys(f), c_null_ptr, &
                                      0_c_size_t), stat, errmsg)
  end subroutine

  ! Rank 4: of rank 3 one after another, along the last dimension that does not hold the features.
  subroutine evaluate_f32_4(self, x, y, feature_dimension, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    real(c_float), intent(in), target :: x(:, :, :, :)
    real(c_float), intent(inout), target :: y(:, :, :, :)
    integer, intent(in), optional :: feature_dimension
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer :: f, d, k
    integer(c_intptr_t) :: xs(4), ys(4)
    f = chosen(feature_dimension)
    if (.not. fits(self, shape(x), 'y', shape(y), f, stat, errmsg)) return
    d = merge(3, 4, f == 4)
    xs = [stride_f32_1(x(:, 1, 1, 1)), stride_f32_1(x(1, :, 1, 1)), stride_f32_1(x(1, 1, :, 1)), stride_f32_1(x(1, 1, 1, :))]
    ys = [stride_f32_1(y(:, 1, 1, 1)), stride_f32_1(y(1, :, 1, 1)), stride_f32_1(y(1, 1, :, 1)), stride_f32_1(y(1, 1, 1, :))]
    if (.not. slabs_apart(4 * xs, shape(x), address(c_loc(x(1, 1, 1, 1))), 4 * ys, shape(y), &
                          address(c_loc(y(1, 1, 1, 1))), d, 4, stat, errmsg)) return
    do k = 1, size(x, d)
      if (f == 4) then
        call self%evaluate_f32_3(x(:, :, k, :), y(:, :, k, :), 3, stat, errmsg)
      else
        call self%evaluate_f32_3(x(:, :, :, k), y(:, :, :, k), f, stat, errmsg)
      end if
      if (.not. present(stat)) cycle
      if (stat /= lockstep_ok) return
    end do
  end subroutine

  subroutine evaluate_f64_4(self, x, y, feature_dimension, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    real(c_double), intent(in), target :: x(:, :, :, :)
    real(c_double), intent(inout), target :: y(:, :, :, :)
    integer, intent(in), optional :: feature_dimension
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer :: f, d, k
    integer(c_intptr_t) :: xs(4), ys(4)
    f = chosen(feature_dimension)
    if (.not. fits(self, shape(x), 'y', shape(y), f, stat, errmsg)) return
    d = merge(3, 4, f == 4)
    xs = [stride_f64_1(x(:, 1, 1, 1)), stride_f64_1(x(1, :, 1, 1)), stride_f64_1(x(1, 1, :, 1)), stride_f64_1(x(1, 1, 1, :))]
    ys = [stride_f64_1(y(:, 1, 1, 1)), stride_f64_1(y(1, :, 1, 1)), stride_f64_1(y(1, 1, :, 1)), stride_f64_1(y(1, 1, 1, :))]
    if (.not. slabs_apart(8 * xs, shape(x), address(c_loc(x(1, 1, 1, 1))), 8 * ys, shape(y), &
                          address(c_loc(y(1, 1, 1, 1))), d, 8, stat, errmsg)) return
    do k = 1, size(x, d)
      if (f == 4) then
        call self%evaluate_f64_3(x(:, :, k, :), y(:, :, k, :), 3, stat, errmsg)
      else
        call self%evaluate_f64_3(x(:, :, :, k), y(:, :, :, k), f, stat, errmsg)
      end if
      if (.not. present(stat)) cycle
      if (stat /= lockstep_ok) return
    end do
  end subroutine

  subroutine jvp_f32_1(self, x, x_dot, y_dot, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    real(c_float), intent(in), target :: x(:), x_dot(:)
    real(c_float), intent(inout), target :: y_dot(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (.not. fits(self, shape(x), 'y_dot', shape(y_dot), 1, stat, errmsg, 'x_dot', shape(x_dot))) return
    call answer(c_jvp_f32(self%handle, 1_c_size_t, c_loc(x(1)), 1_c_intptr_t, stride_f32_1(x), c_loc(x_dot(1)), &
                          1_c_intptr_t, stride_f32_1(x_dot), c_null_ptr, 0_c_intptr_t, 0_c_intptr_t, c_loc(y_dot(1)), &
                          1_c_intptr_t, stride_f32_1(y_dot), c_null_ptr, 0_c_size_t), stat, errmsg)
  end subroutine

  subroutine jvp_f32_2(self, x, x_dot, y_dot, feature_dimension, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    real(c_float), intent(in), target :: x(:, :), x_dot(:, :)
    real(c_float), intent(inout), target :: y_dot(:, :)
    integer, intent(in), optional :: feature_dimension
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer :: f, s
    integer(c_intptr_t) :: xs(2), vs(2), ws(2)
    f = chosen(feature_dimension)
    if (.not. fits(self, shape(x), 'y_dot', shape(y_dot), f, stat, errmsg, 'x_dot', shape(x_dot))) return
    s = 3 - f
    xs = [stride_f32_1(x(:, 1)), stride_f32_1(x(1, :))]
    vs = [stride_f32_1(x_dot(:, 1)), stride_f32_1(x_dot(1, :))]
    ws = [stride_f32_1(y_dot(:, 1)), stride_f32_1(y_dot(1, :))]
    call answer(c_jvp_f32(self%handle, size(x, s, c_size_t), c_loc(x(1, 1)), xs(s), xs(f), c_loc(x_dot(1, 1)), vs(s), &
                          vs(f), c_null_ptr, 0_c_intptr_t, 0_c_intptr_t, c_loc(y_dot(1, 1)), ws(s), ws(f), c_null_ptr, &
                          0_c_size_t), stat, errmsg)
  end subroutine

  subroutine jvp_f64_1(self, x, x_dot, y_dot, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    real(c_double), intent(in), target :: x(:), x_dot(:)
    real(c_double), intent(inout), target :: y_dot(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (.not. fits(self, shape(x), 'y_dot', shape(y_dot), 1, stat, errmsg, 'x_dot', shape(x_dot))) return
    call answer(c_jvp_f64(self%handle, 1_c_size_t, c_loc(x(1)), 1_c_intptr_t, stride_f64_1(x), c_loc(x_dot(1)), &
                          1_c_intptr_t, stride_f64_1(x_dot), c_null_ptr, 0_c_intptr_t, 0_c_intptr_t, c_loc(y_dot(1)), &
                          1_c_intptr_t, stride_f64_1(y_dot), c_null_ptr, 0_c_size_t), stat, errmsg)
  end subroutine

  subroutine jvp_f64_2(self, x, x_dot, y_dot, feature_dimension, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    real(c_double), intent(in), target :: x(:, :), x_dot(:, :)
    real(c_double), intent(inout), target :: y_dot(:, :)
    integer, intent(in), optional :: feature_dimension
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer :: f, s
    integer(c_intptr_t) :: xs(2), vs(2), ws(2)
    f = chosen(feature_dimension)
    if (.not. fits(self, shape(x), 'y_dot', shape(y_dot), f, stat, errmsg, 'x_dot', shape(x_dot))) return
    s = 3 - f
    xs = [stride_f64_1(x(:, 1)), stride_f64_1(x(1, :))]
    vs = [stride_f64_1(x_dot(:, 1)), stride_f64_1(x_dot(1, :))]
    ws = [stride_f64_1(y_dot(:, 1)), stride_f64_1(y_dot(1, :))]
    call answer(c_jvp_f64(self%handle, size(x, s, c_size_t), c_loc(x(1, 1)), xs(s), xs(f), c_loc(x_dot(1, 1)), vs(s), &
                          vs(f), c_null_ptr, 0_c_intptr_t, 0_c_intptr_t, c_loc(y_dot(1, 1)), ws(s), ws(f), c_null_ptr, &
                          0_c_size_t), stat, errmsg)
  end subroutine

  subroutine vjp_f32_1(self, x, y_bar, x_bar, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    real(c_float), intent(in), target :: x(:), y_bar(:)
    real(c_float), intent(inout), target :: x_bar(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (.not. fits(self, shape(x), 'y_bar', shape(y_bar), 1, stat, errmsg, 'x_bar', shape(x_bar))) return
    call answer(c_vjp_f32(self%handle, 1_c_size_t, c_loc(x(1)), 1_c_intptr_t, stride_f32_1(x), c_loc(y_bar(1)), &
                          1_c_intptr_t, stride_f32_1(y_bar), c_null_ptr, 0_c_intptr_t, 0_c_intptr_t, c_loc(x_bar(1)), &
                          1_c_intptr_t, stride_f32_1(x_bar), c_null_ptr, 0_c_size_t), stat, errmsg)
  end subroutine

  subroutine vjp_f32_2(self, x, y_bar, x_bar, feature_dimension, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    real(c_float), intent(in), target :: x(:, :), y_bar(:, :)
    real(c_float), intent(inout), target :: x_bar(:, :)
    integer, intent(in), optional :: feature_dimension
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer :: f, s
    integer(c_intptr_t) :: xs(2), vs(2), ws(2)
    f = chosen(feature_dimension)
    if (.not. fits(self, shape(x), 'y_bar', shape(y_bar), f, stat, errmsg, 'x_bar', shape(x_bar))) return
    s = 3 - f
    xs = [stride_f32_1(x(:, 1)), stride_f32_1(x(1, :))]
    vs = [stride_f32_1(y_bar(:, 1)), stride_f32_1(y_bar(1, :))]
    ws = [stride_f32_1(x_bar(:, 1)), stride_f32_1(x_bar(1, :))]
    call answer(c_vjp_f32(self%handle, size(x, s, c_size_t), c_loc(x(1, 1)), xs(s), xs(f), c_loc(y_bar(1, 1)), vs(s), &
                          vs(f), c_null_ptr, 0_c_intptr_t, 0_c_intptr_t, c_loc(x_bar(1, 1)), ws(s), ws(f), c_null_ptr, &
                          0_c_size_t), stat, errmsg)
  end subroutine

  subroutine vjp_f64_1(self, x, y_bar, x_bar, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    real(c_double), intent(in), target :: x(:), y_bar(:)
    real(c_double), intent(inout), target :: x_bar(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (.not. fits(self, shape(x), 'y_bar', shape(y_bar), 1, stat, errmsg, 'x_bar', shape(x_bar))) return
    call answer(c_vjp_f64(self%handle, 1_c_size_t, c_loc(x(1)), 1_c_intptr_t, stride_f64_1(x), c_loc(y_bar(1)), &
                          1_c_intptr_t, stride_f64_1(y_bar), c_null_ptr, 0_c_intptr_t, 0_c_intptr_t, c_loc(x_bar(1)), &
                          1_c_intptr_t, stride_f64_1(x_bar), c_null_ptr, 0_c_size_t), stat, errmsg)
  end subroutine

  subroutine vjp_f64_2(self, x, y_bar, x_bar, feature_dimension, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    real(c_double), intent(in), target :: x(:, :), y_bar(:, :)
    real(c_double), intent(inout), target :: x_bar(:, :)
    integer, intent(in), optional :: feature_dimension
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer :: f, s
    integer(c_intptr_t) :: xs(2), vs(2), ws(2)
    f = chosen(feature_dimension)
    if (.not. fits(self, shape(x), 'y_bar', shape(y_bar), f, stat, errmsg, 'x_bar', shape(x_bar))) return
    s = 3 - f
    xs = [stride_f64_1(x(:, 1)), stride_f64_1(x(1, :))]
    vs = [stride_f64_1(y_bar(:, 1)), stride_f64_1(y_bar(1, :))]
    ws = [stride_f64_1(x_bar(:, 1)), stride_f64_1(x_bar(1, :))]
    call answer(c_vjp_f64(self%handle, size(x, s, c_size_t), c_loc(x(1, 1)), xs(s), xs(f), c_loc(y_bar(1, 1)), vs(s), &
                          vs(f), c_null_ptr, 0_c_intptr_t, 0_c_intptr_t, c_loc(x_bar(1, 1)), ws(s), ws(f), c_null_ptr, &
                          0_c_size_t), stat, errmsg)
  end subroutine

  subroutine jacobian_f32_1(self, x, jac, y, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    real(c_float), intent(in), target :: x(:)
    real(c_float), intent(inout), target :: jac(:, :)
    real(c_float), intent(inout), optional, target :: y(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: values
    integer(c_intptr_t) :: ys
    integer :: y_shape(1)
    y_shape = self%output_count
    if (present(y)) y_shape = shape(y)
    if (.not. fits(self, shape(x), 'y', y_shape, 1, stat, errmsg)) return
    if (.not. jacobian_fits(shape(jac), [self%output_count, self%input_count], stat, errmsg)) return
    values = c_null_ptr
    ys = 1
    if (present(y)) then
      values = c_loc(y(1))
      ys = stride_f32_1(y)
    end if
    call answer(c_jacobian_f32(self%handle, 1_c_size_t, c_loc(x(1)), 1_c_intptr_t, stride_f32_1(x), values, 1_c_intptr_t, &
                               ys, c_loc(jac(1, 1)), 1_c_intptr_t, stride_f32_1(jac(:, 1)), stride_f32_1(jac(1, :)), &
                               c_null_ptr, 0_c_size_t), stat, errmsg)
  end subroutine

  subroutine jacobian_f32_2(self, x, jac, y, feature_dimension, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    real(c_float), intent(in), target :: x(:, :)
    real(c_float), intent(inout), target :: jac(:, :, :)
    real(c_float), intent(inout), optional, target :: y(:, :)
    integer, intent(in), optional :: feature_dimension
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: values
    integer(c_intptr_t) :: xs(2), ys(2), js(3)
    integer :: f, s, y_shape(2), jac_shape(3)
    f = chosen(feature_dimension)
    s = 3 - f
    y_shape = shape(x)
    if (f == 1 .or. f == 2) y_shape(f) = self%output_count
    if (present(y)) y_shape = shape(y)
    if (.not. fits(self, shape(x), 'y', y_shape, f, stat, errmsg)) return
    jac_shape = [self%output_count, self%input_count, size(x, s)]
    if (f == 2) jac_shape = cshift(jac_shape, -1)
    if (.not. jacobian_fits(shape(jac), jac_shape, stat, errmsg)) return
    xs = [stride_f32_1(x(:, 1)), stride_f32_1(x(1, :))]
    ys = 1
    values = c_null_ptr
    if (present(y)) then
      ys = [stride_f32_1(y(:, 1)), stride_f32_1(y(1, :))]
      values = c_loc(y(1, 1))
    end if
    js = [stride_f32_1(jac(:, 1, 1)), stride_f32_1(jac(1, :, 1)), stride_f32_1(jac(1, 1, :))]
    if (f == 2) js = cshift(js, 1)
    call answer(c_jacobian_f32(self%handle, size(x, s, c_size_t), c_loc(x(1, 1)), xs(s), xs(f), values, ys(s), ys(f), &
                               c_loc(jac(1, 1, 1)), js(3), js(1), js(2), c_null_ptr, 0_c_size_t), stat, errmsg)
  end subroutine

  subroutine jacobian_f64_1(self, x, jac, y, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    real(c_double), intent(in), target :: x(:)
    real(c_double), intent(inout), target :: jac(:, :)
    real(c_double), intent(inout), optional, target :: y(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: values
    integer(c_intptr_t) :: ys
    integer :: y_shape(1)
    y_shape = self%output_count
    if (present(y)) y_shape = shape(y)
    if (.not. fits(self, shape(x), 'y', y_shape, 1, stat, errmsg)) return
    if (.not. jacobian_fits(shape(jac), [self%output_count, self%input_count], stat, errmsg)) return
    values = c_null_ptr
    ys = 1
    if (present(y)) then
      values = c_loc(y(1))
      ys = stride_f64_1(y)
    end if
    call answer(c_jacobian_f64(self%handle, 1_c_size_t, c_loc(x(1)), 1_c_intptr_t, stride_f64_1(x), values, 1_c_intptr_t, &
                               ys, c_loc(jac(1, 1)), 1_c_intptr_t, stride_f64_1(jac(:, 1)), stride_f64_1(jac(1, :)), &
                               c_null_ptr, 0_c_size_t), stat, errmsg)
  end subroutine

  subroutine jacobian_f64_2(self, x, jac, y, feature_dimension, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    real(c_double), intent(in), target :: x(:, :)
    real(c_double), intent(inout), target :: jac(:, :, :)
    real(c_double), intent(inout), optional, target :: y(:, :)
    integer, intent(in), optional :: feature_dimension
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: values
    integer(c_intptr_t) :: xs(2), ys(2), js(3)
    integer :: f, s, y_shape(2), jac_shape(3)
    f = chosen(feature_dimension)
    s = 3 - f
    y_shape = shape(x)
    if (f == 1 .or. f == 2) y_shape(f) = self%output_count
    if (present(y)) y_shape = shape(y)
    if (.not. fits(self, shape(x), 'y', y_shape, f, stat, errmsg)) return
    jac_shape = [self%output_count, self%input_count, size(x, s)]
    if (f == 2) jac_shape = cshift(jac_shape, -1)
    if (.not. jacobian_fits(shape(jac), jac_shape, stat, errmsg)) return
    xs = [stride_f64_1(x(:, 1)), stride_f64_1(x(1, :))]
    ys = 1
    values = c_null_ptr
    if (present(y)) then
      ys = [stride_f64_1(y(:, 1)), stride_f64_1(y(1, :))]
      values = c_loc(y(1, 1))
    end if
    js = [stride_f64_1(jac(:, 1, 1)), stride_f64_1(jac(1, :, 1)), stride_f64_1(jac(1, 1, :))]
    if (f == 2) js = cshift(js, 1)
    call answer(c_jacobian_f64(self%handle, size(x, s, c_size_t), c_loc(x(1, 1)), xs(s), xs(f), values, ys(s), ys(f), &
                               c_loc(jac(1, 1, 1)), js(3), js(1), js(2), c_null_ptr, 0_c_size_t), stat, errmsg)
  end subroutine

  integer function model_input_ports(self)
    class(lockstep_model), intent(in) :: self
    model_input_ports = int(c_model_ports(self%handle, 0_c_int))
  end function

  integer function model_output_ports(self)
    class(lockstep_model), intent(in) :: self
    model_output_ports = int(c_model_ports(self%handle, 1_c_int))
  end function

  integer function plan_input_ports(self)
    class(lockstep_plan), intent(in) :: self
    plan_input_ports = int(c_plan_ports(self%handle, 0_c_int))
  end function

  integer function plan_output_ports(self)
    class(lockstep_plan), intent(in) :: self
    plan_output_ports = int(c_plan_ports(self%handle, 1_c_int))
  end function

  integer function plan_input_port(self, name, stat, errmsg) result(port)
    class(lockstep_plan), intent(in) :: self
    character(*), intent(in) :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_size_t) :: index
    integer(c_int) :: status
    port = 0
    status = c_plan_port_index(self%handle, 0_c_int, to_c(name), index)
    if (status == lockstep_ok) port = int(index) + 1
    call answer(status, stat, errmsg)
  end function

  integer function plan_output_port(self, name, stat, errmsg) result(port)
    class(lockstep_plan), intent(in) :: self
    character(*), intent(in) :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_size_t) :: index
    integer(c_int) :: status
    port = 0
    status = c_plan_port_index(self%handle, 1_c_int, to_c(name), index)
    if (status == lockstep_ok) port = int(index) + 1
    call answer(status, stat, errmsg)
  end function

  function plan_input_port_name(self, index) result(name)
    class(lockstep_plan), intent(in) :: self
    integer, intent(in) :: index
    character(:), allocatable :: name
    name = port_name(self%handle, 0_c_int, index)
  end function

  function plan_output_port_name(self, index) result(name)
    class(lockstep_plan), intent(in) :: self
    integer, intent(in) :: index
    character(:), allocatable :: name
    name = port_name(self%handle, 1_c_int, index)
  end function

  integer function plan_input_port_features(self, index)
    class(lockstep_plan), intent(in) :: self
    integer, intent(in) :: index
    plan_input_port_features = port_features(self%handle, 0_c_int, index)
  end function

  integer function plan_output_port_features(self, index)
    class(lockstep_plan), intent(in) :: self
    integer, intent(in) :: index
    plan_output_port_features = port_features(self%handle, 1_c_int, index)
  end function

  function port_name(handle, direction, index) result(name)
    type(c_ptr), intent(in) :: handle
    integer(c_int), intent(in) :: direction
    integer, intent(in) :: index
    character(:), allocatable :: name
    type(port_text) :: port
    name = ''
    if (index < 1) return
    if (c_plan_port(handle, direction, int(index - 1, c_size_t), port) == lockstep_ok) name = from_c(port%name)
  end function

  integer function port_features(handle, direction, index)
    type(c_ptr), intent(in) :: handle
    integer(c_int), intent(in) :: direction
    integer, intent(in) :: index
    type(port_text) :: port
    port_features = 0
    if (c_plan_port(handle, direction, int(index - 1, c_size_t), port) == lockstep_ok) port_features = int(port%features)
  end function

  ! Of C's binding, though nothing in C calls them: that has the compiler describe the caller's array by its address and
  ! its steps in bytes. Otherwise gfortran 12 hands over a component of an array of derived type as if it began where the
  ! type does (a pointer), or a copy (an array that is none).
  type(lockstep_array) function array_f32_1(a) result(array) bind(c, name='')
    real(c_float), intent(in), pointer :: a(:)
    integer :: i
    array%precision = lockstep_float32
    if (.not. associated(a)) array%samples = -1_c_int
    if (.not. associated(a)) return
    array%samples = 1_c_int
    array%features = size(a, kind=c_int)
    if (size(a) == 0) return
    i = lbound(a, 1)
    array%data = c_loc(a(i))
    if (size(a) > 1) call step(array, array%feature_stride, c_loc(a(i + 1)))
  end function

  type(lockstep_array) function array_f32_2(a, feature_dimension) result(array) bind(c, name='')
    real(c_float), intent(in), pointer :: a(:, :)
    integer, intent(in), optional :: feature_dimension
    integer(c_intptr_t) :: strides(2)
    integer :: f, i, j
    f = chosen(feature_dimension)
    array%precision = lockstep_float32
    array%feature_dimension = int(f, c_int)
    if (.not. associated(a)) array%samples = -1_c_int
    if (f < 1 .or. f > 2 .or. .not. associated(a)) return
    array%samples = size(a, 3 - f, c_int)
    array%features = size(a, f, c_int)
    if (size(a) == 0) return
    i = lbound(a, 1)
    j = lbound(a, 2)
    array%data = c_loc(a(i, j))
    strides = 1
    if (size(a, 1) > 1) call step(array, strides(1), c_loc(a(i + 1, j)))
    if (size(a, 2) > 1) call step(array, strides(2), c_loc(a(i, j + 1)))
    array%feature_stride = strides(f)
    array%sample_stride = strides(3 - f)
  end function

  type(lockstep_array) function array_f64_1(a) result(array) bind(c, name='')
    real(c_double), intent(in), pointer :: a(:)
    integer :: i
    array%precision = lockstep_float64
    if (.not. associated(a)) array%samples = -1_c_int
    if (.not. associated(a)) return
    array%samples = 1_c_int
    array%features = size(a, kind=c_int)
    if (size(a) == 0) return
    i = lbound(a, 1)
    array%data = c_loc(a(i))
    if (size(a) > 1) call step(array, array%feature_stride, c_loc(a(i + 1)))
  end function

  type(lockstep_array) function array_f64_2(a, feature_dimension) result(array) bind(c, name='')
    real(c_double), intent(in), pointer :: a(:, :)
    integer, intent(in), optional :: feature_dimension
    integer(c_intptr_t) :: strides(2)
    integer :: f, i, j
    f = chosen(feature_dimension)
    array%precision = lockstep_float64
    array%feature_dimension = int(f, c_int)
    if (.not. associated(a)) array%samples = -1_c_int
    if (f < 1 .or. f > 2 .or. .not. associated(a)) return
    array%samples = size(a, 3 - f, c_int)
    array%features = size(a, f, c_int)
    if (size(a) == 0) return
    i = lbound(a, 1)
    j = lbound(a, 2)
    array%data = c_loc(a(i, j))
    strides = 1
    if (size(a, 1) > 1) call step(array, strides(1), c_loc(a(i + 1, j)))
    if (size(a, 2) > 1) call step(array, strides(2), c_loc(a(i, j + 1)))
    array%feature_stride = strides(f)
    array%sample_stride = strides(3 - f)
  end function

  ! The elements from the first of an array to a neighbour. Told from addresses: a pointer may step through the array of
  ! another type.
  subroutine step(array, stride, neighbour)
    type(lockstep_array), intent(inout) :: array
    integer(c_intptr_t), intent(out) :: stride
    type(c_ptr), intent(in) :: neighbour
    integer(c_intptr_t) :: bytes, element
    element = merge(4, 8, array%precision == lockstep_float32)
    bytes = address(neighbour) - address(array%data)
    stride = bytes / element
    if (stride * element /= bytes .and. array%odd_bytes == 0) array%odd_bytes = bytes
  end subroutine

  subroutine plan_evaluate_ports(self, x, y, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    type(lockstep_array), intent(in) :: x(:), y(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_size_t) :: samples
    if (.not. ports_fit(self, x, y, y, stat, errmsg)) return
    if (.not. port_shapes_fit(self, 1_c_int, y, 'y', x(1), stat, errmsg)) return
    samples = int(x(1)%samples, c_size_t)
    if (x(1)%precision == lockstep_float32) then
      call answer(c_evaluate_ports_f32(self%handle, samples, bare(x), size(x, kind=c_size_t), bare(y), &
                                       size(y, kind=c_size_t), c_null_ptr, 0_c_size_t), stat, errmsg)
    else
      call answer(c_evaluate_ports_f64(self%handle, samples, bare(x), size(x, kind=c_size_t), bare(y), &
                                       size(y, kind=c_size_t), c_null_ptr, 0_c_size_t), stat, errmsg)
    end if
  end subroutine

  subroutine plan_jvp_ports(self, x, x_dot, y_dot, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    type(lockstep_array), intent(in) :: x(:), x_dot(:), y_dot(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_size_t) :: samples
    if (.not. ports_fit(self, x, x_dot, y_dot, stat, errmsg)) return
    if (.not. port_shapes_fit(self, 0_c_int, x_dot, 'x_dot', x(1), stat, errmsg)) return
    if (.not. port_shapes_fit(self, 1_c_int, y_dot, 'y_dot', x(1), stat, errmsg)) return
    samples = int(x(1)%samples, c_size_t)
    if (x(1)%precision == lockstep_float32) then
      call answer(c_jvp_ports_f32(self%handle, samples, bare(x), bare(x_dot), c_null_ptr, bare(y_dot), &
                                   size(x, kind=c_size_t), size(y_dot, kind=c_size_t), c_null_ptr, 0_c_size_t), stat, errmsg)
    else
      call answer(c_jvp_ports_f64(self%handle, samples, bare(x), bare(x_dot), c_null_ptr, bare(y_dot), &
                                   size(x, kind=c_size_t), size(y_dot, kind=c_size_t), c_null_ptr, 0_c_size_t), stat, errmsg)
    end if
  end subroutine

  subroutine plan_vjp_ports(self, x, y_bar, x_bar, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    type(lockstep_array), intent(in) :: x(:), y_bar(:), x_bar(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_size_t) :: samples
    if (.not. ports_fit(self, x, y_bar, x_bar, stat, errmsg)) return
    if (.not. port_shapes_fit(self, 1_c_int, y_bar, 'y_bar', x(1), stat, errmsg)) return
    if (.not. port_shapes_fit(self, 0_c_int, x_bar, 'x_bar', x(1), stat, errmsg)) return
    samples = int(x(1)%samples, c_size_t)
    if (x(1)%precision == lockstep_float32) then
      call answer(c_vjp_ports_f32(self%handle, samples, bare(x), bare(y_bar), c_null_ptr, bare(x_bar), &
                                   size(x, kind=c_size_t), size(y_bar, kind=c_size_t), c_null_ptr, 0_c_size_t), stat, errmsg)
    else
      call answer(c_vjp_ports_f64(self%handle, samples, bare(x), bare(y_bar), c_null_ptr, bare(x_bar), &
                                   size(x, kind=c_size_t), size(y_bar, kind=c_size_t), c_null_ptr, 0_c_size_t), stat, errmsg)
    end if
  end subroutine

  function bare(arrays) result(ports)
    type(lockstep_array), intent(in) :: arrays(:)
    type(port_array) :: ports(size(arrays))
    integer :: i
    do i = 1, size(arrays)
      ports(i) = port_array(arrays(i)%data, arrays(i)%sample_stride, arrays(i)%feature_stride)
    end do
  end function

  ! The plan is there, x fits its input ports, and all arrays have one precision. False also for no samples.
  logical function ports_fit(self, x, v, w, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    type(lockstep_array), intent(in) :: x(:), v(:), w(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    ports_fit = .false.
    if (.not. c_associated(self%handle)) then
      call refuse('plan: found an empty one, expected a compiled one; call plan%compile first', stat, errmsg)
      return
    end if
    if (size(x) == 0) then
      call refuse('x: found no arrays, expected one for each input port', stat, errmsg)
      return
    end if
    if (any(x%precision /= x(1)%precision) .or. any(v%precision /= x(1)%precision) .or. &
        any(w%precision /= x(1)%precision)) then
      call refuse('x: found arrays of two precisions, expected one; the plan''s', stat, errmsg)
      return
    end if
    if (.not. port_shapes_fit(self, 0_c_int, x, 'x', x(1), stat, errmsg)) return
    ports_fit = x(1)%samples > 0
    if (.not. ports_fit) call answer(int(lockstep_ok, c_int), stat, errmsg)
  end function

  logical function port_shapes_fit(self, direction, arrays, name, first, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    integer(c_int), intent(in) :: direction
    type(lockstep_array), intent(in) :: arrays(:), first
    character(*), intent(in) :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer :: i, expected
    port_shapes_fit = .false.
    expected = int(c_plan_ports(self%handle, direction))
    if (size(arrays) /= expected) then
      call refuse(name // ': found ' // text(size(arrays)) // ' arrays, expected ' // text(expected) // &
                  ', one for each port', stat, errmsg)
      return
    end if
    do i = 1, size(arrays)
      if (arrays(i)%feature_dimension < 1 .or. arrays(i)%feature_dimension > 2) then
        call refuse(name // ' "' // port_name(self%handle, direction, i) // '": found feature_dimension ' // &
                    text(int(arrays(i)%feature_dimension)) // ', expected 1 or 2', stat, errmsg)
        return
      end if
      if (arrays(i)%samples < 0) then
        call refuse(name // ' "' // port_name(self%handle, direction, i) // '": found an array that is not allocated, or ' // &
                    'a pointer to none, expected ' // text(port_features(self%handle, direction, i)) // ' features', &
                    stat, errmsg)
        return
      end if
      if (arrays(i)%odd_bytes /= 0) then
        call refuse(name // ' "' // port_name(self%handle, direction, i) // '": found neighbours ' // &
                    text(int(arrays(i)%odd_bytes)) // ' bytes apart, expected a multiple of ' // &
                    text(merge(4, 8, arrays(i)%precision == lockstep_float32)) // &
                    '; copy them into an array of their own', stat, errmsg)
        return
      end if
      if (arrays(i)%features /= port_features(self%handle, direction, i)) then
        call refuse(name // ' "' // port_name(self%handle, direction, i) // '": found ' // text(int(arrays(i)%features)) // &
                    ' features, expected ' // text(port_features(self%handle, direction, i)) // &
                    '; give feature_dimension if they lie elsewhere', stat, errmsg)
        return
      end if
      if (arrays(i)%samples /= first%samples) then
        call refuse(name // ' "' // port_name(self%handle, direction, i) // '": found ' // text(int(arrays(i)%samples)) // &
                    ' samples, expected ' // text(int(first%samples)) // ' as in the first port', stat, errmsg)
        return
      end if
    end do
    port_shapes_fit = .true.
  end function

  ! Elements between neighbours; 1 where there are none.
  integer(c_intptr_t) function stride_f32_1(a) result(stride)
    real(c_float), intent(in), target :: a(:)
    stride = 1
    if (size(a) > 1) stride = (address(c_loc(a(2))) - address(c_loc(a(1)))) / (storage_size(a) / 8)
  end function

  integer(c_intptr_t) function stride_f64_1(a) result(stride)
    real(c_double), intent(in), target :: a(:)
    stride = 1
    if (size(a) > 1) stride = (address(c_loc(a(2))) - address(c_loc(a(1)))) / (storage_size(a) / 8)
  end function

  integer(c_intptr_t) function address(pointer)
    type(c_ptr), intent(in) :: pointer
    address = transfer(pointer, address)
  end function

  integer function chosen(feature_dimension)
    integer, intent(in), optional :: feature_dimension
    chosen = 1
    if (present(feature_dimension)) chosen = feature_dimension
  end function

  ! False when there is nothing to do: no samples, or shapes that do not fit, which the caller is told. y is of the plan's
  ! outputs, v, where there is one, of its inputs as x is.
  logical function fits(self, x_shape, y_name, y_shape, f, stat, errmsg, v_name, v_shape)
    class(lockstep_plan), intent(in) :: self
    integer, intent(in) :: x_shape(:), y_shape(:), f
    character(*), intent(in) :: y_name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(*), intent(in), optional :: v_name
    integer, intent(in), optional :: v_shape(:)
    fits = .false.
    if (.not. c_associated(self%handle)) then
      call refuse('plan: found an empty one, expected a compiled one; call plan%compile first', stat, errmsg)
      return
    end if
    if (.not. one_port(self, 0_c_int, 'input', stat, errmsg)) return
    if (.not. one_port(self, 1_c_int, 'output', stat, errmsg)) return
    if (f < 1 .or. f > size(x_shape)) then
      call refuse('feature_dimension: found ' // text(f) // ', expected 1 to ' // text(size(x_shape)), stat, errmsg)
      return
    end if
    if (.not. one_fits('x', x_shape, self%input_count)) return
    if (present(v_name)) then
      if (.not. one_fits(v_name, v_shape, self%input_count)) return
    end if
    if (.not. one_fits(y_name, y_shape, self%output_count)) return
    fits = all(x_shape > 0) .and. all(y_shape > 0)
    if (.not. fits) call answer(int(lockstep_ok, c_int), stat, errmsg)

  contains
    logical function one_fits(name, array_shape, features)
      character(*), intent(in) :: name
      integer, intent(in) :: array_shape(:), features
      integer :: d
      one_fits = .false.
      if (array_shape(f) /= features) then
        if (array_shape(f) == 0) then
          call refuse(name // ': found 0 features along dimension ' // text(f) // ', expected ' // text(features) // &
                      '; allocate it first, if it is not', stat, errmsg)
        else if (size(x_shape) == 1) then
          call refuse(name // ': found ' // text(array_shape(f)) // ' features in an array of rank 1, which is one ' // &
                      'sample, expected ' // text(features) // '; give samples a dimension of their own', stat, errmsg)
        else
          call refuse(name // ': found ' // text(array_shape(f)) // ' features along dimension ' // text(f) // &
                      ', expected ' // text(features) // '; give feature_dimension if they lie elsewhere, allocate it ' // &
                      'first if it is not', stat, errmsg)
        end if
        return
      end if
      do d = 1, size(x_shape)
        if (d /= f .and. array_shape(d) /= x_shape(d)) then
          call refuse(name // ': found ' // text(array_shape(d)) // ' samples along dimension ' // text(d) // &
                      ', expected ' // text(x_shape(d)) // ' as in x', stat, errmsg)
          return
        end if
      end do
      one_fits = .true.
    end function
  end function

  logical function jacobian_fits(found, expected, stat, errmsg)
    integer, intent(in) :: found(:), expected(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    jacobian_fits = all(found == expected)
    if (.not. jacobian_fits) call refuse('jac: found the shape (' // list(found) // '), expected (' // list(expected) // &
                                         '); allocate it first, if it is not', stat, errmsg)

  contains
    function list(numbers)
      integer, intent(in) :: numbers(:)
      character(:), allocatable :: list
      integer :: i
      list = text(numbers(1))
      do i = 2, size(numbers)
        list = list // ', ' // text(numbers(i))
      end do
    end function
  end function

  logical function one_port(self, direction, name, stat, errmsg)
    class(lockstep_plan), intent(in) :: self
    integer(c_int), intent(in) :: direction
    character(*), intent(in) :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer :: ports
    ports = int(c_plan_ports(self%handle, direction))
    one_port = ports == 1
    if (ports == 0) then
      call refuse('plan: found one that was freed, through a copy perhaps, expected a compiled one', stat, errmsg)
      return
    end if
    if (.not. one_port) call refuse('plan: found ' // text(ports) // ' ' // name // ' ports, expected one; give an array ' // &
                                    'for each: evaluate_ports, jvp_ports, vjp_ports', stat, errmsg)
  end function

  ! Whether no slab of y along dimension d lies in the way of another slab of x, which the caller is told. Strides and the
  ! size of an element are in bytes.
  logical function slabs_apart(xs, x_shape, x, ys, y_shape, y, d, bytes, stat, errmsg)
    integer(c_intptr_t), intent(in) :: xs(4), ys(4), x, y
    integer, intent(in) :: x_shape(4), y_shape(4), d, bytes
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_intptr_t) :: x_ends(2), y_ends(2)
    integer :: k, of_slab(4), of_result(4)
    slabs_apart = .true.
    if (apart(ends(x, xs, x_shape), ends(y, ys, y_shape))) return
    if (x == y .and. all(xs == ys .or. x_shape == 1) .and. all(x_shape == y_shape)) return
    of_slab = x_shape
    of_slab(d) = 1
    of_result = y_shape
    of_result(d) = 1
    x_ends = ends(x, xs, of_slab)
    y_ends = ends(y, ys, of_result)
    slabs_apart = xs(d) == ys(d)
    do k = 1, x_shape(d) - 1
      slabs_apart = slabs_apart .and. apart(x_ends, y_ends + k * ys(d)) .and. apart(x_ends, y_ends - k * ys(d))
    end do
    if (.not. slabs_apart) then
      call refuse('y: found memory that overlaps another slab of x, expected memory apart from it, or the same array ' // &
                  'section; give it an array of its own', stat, errmsg)
    end if

  contains
    function ends(address, strides, of)
      integer(c_intptr_t), intent(in) :: address, strides(4)
      integer, intent(in) :: of(4)
      integer(c_intptr_t) :: ends(2), reach(4)
      reach = (of - 1) * strides
      ends = [address + sum(min(reach, 0_c_intptr_t)), address + sum(max(reach, 0_c_intptr_t)) + bytes]
    end function
    logical function apart(a, b)
      integer(c_intptr_t), intent(in) :: a(2), b(2)
      apart = a(2) <= b(1) .or. b(2) <= a(1)
    end function
  end function

  subroutine answer(status, stat, errmsg)
    integer(c_int), intent(in) :: status
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (present(stat)) stat = status
    if (status == lockstep_ok) return
    call tell(in_our_words(from_c(c_last_error())), present(stat), errmsg)
  end subroutine

  ! An array whose bounds are those of before it was deallocated: its shape fits, and C finds no address.
  function in_our_words(message) result(words)
    character(*), intent(in) :: message
    character(:), allocatable :: words
    integer :: i
    words = message
    i = index(message, ': found a null pointer, expected an address')
    if (i == 0) return
    words = message(:i - 1)
    if (index(words, 'in') == 1) then
      words = 'x' // words(3:)
    else if (index(words, 'out') == 1) then
      words = 'y' // words(4:)
    else if (words == 'jacobian') then
      words = 'jac'
    end if
    words = words // ': found an array that is not allocated, or a pointer to none, expected one that is'
  end function

  subroutine refuse(message, stat, errmsg)
    character(*), intent(in) :: message
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (present(stat)) stat = lockstep_invalid_argument
    call tell(message, present(stat), errmsg)
  end subroutine

  subroutine tell(message, handled, errmsg)
    character(*), intent(in) :: message
    logical, intent(in) :: handled
    character(*), intent(inout), optional :: errmsg
    if (present(errmsg)) errmsg = message
    if (handled) return
    write (error_unit, '(2a)') 'lockstep: ', message
    stop 1
  end subroutine

  function text(number)
    integer, intent(in) :: number
    character(:), allocatable :: text
    character(12) :: digits
    write (digits, '(i0)') number
    text = trim(digits)
  end function

  function to_c(string) result(chars)
    character(*), intent(in) :: string
    character(kind=c_char), allocatable :: chars(:)
    integer :: i
    allocate (chars(len_trim(string) + 1))
    do i = 1, len_trim(string)
      chars(i) = string(i:i)
    end do
    chars(size(chars)) = c_null_char
  end function

  function from_c(pointer) result(string)
    type(c_ptr), intent(in) :: pointer
    character(:), allocatable :: string
    character(kind=c_char), pointer :: chars(:)
    integer :: i
    if (.not. c_associated(pointer)) then
      string = ''
      return
    end if
    call c_f_pointer(pointer, chars, [c_strlen(pointer)])
    allocate (character(size(chars)) :: string)
    do i = 1, size(chars)
      string(i:i) = chars(i)
    end do
  end function
end module
