! What the Fortran module claims: every rank, layout, stride and precision gives the bits of one plain call; what does
! not fit is refused in words. usage: fortran_test MODEL (a net of 3 inputs and 3 outputs)
program fortran_test
  use, intrinsic :: iso_c_binding, only: c_intptr_t, c_loc, c_null_ptr
  use, intrinsic :: iso_fortran_env, only: real32, real64, error_unit
  use lockstep
  use packed_points, only: packed_temperature
  implicit none
  integer, parameter :: n = 70
  type(lockstep_model) :: model, never_loaded, two_ports, derivative
  type(lockstep_plan) :: plan, plan64, with_products
  type(lockstep_device_plan) :: device_plan
  real(real32), target :: xd(3, n), yd(3, n)
  real(real64), target :: xd64(3, n)
  real(real32) :: x(3, n), y(3, n), xt(n, 3), yt(n, 3), wide(7, 2 * n), out(5, 3 * n), one(3)
  real(real32) :: x3(3, 7, 10), y3(3, 7, 10), xm(7, 3, 10), ym(7, 3, 10), xl(7, 10, 3), yl(7, 10, 3)
  real(real32) :: x4(3, 7, 5, 2), y4(3, 7, 5, 2), x4m(7, 5, 3, 2), y4m(7, 5, 3, 2), x4l(7, 5, 2, 3), y4l(7, 5, 2, 3)
  real(real64), target :: x64(3, n), y64(3, n), v64(3, n), w64(3, n), jv64(3, n), jw64(3, n), rows64(9, n)
  real(real64) :: jac64(3, 3, n), expected64(3, 3, n), last64(n, 3, 3)
  real(real32) :: jac(3, 3, n)
  real(real64) :: ten(10, n), eight(8, n), bars(8, n), products(10, n), jac10(8, 10, n)
  type :: point  ! what a host that keeps its fields together has
    real(real64) :: depth = -1
    real(real32) :: temperature = 0, flux = 0
    real(real64) :: warm = 0, cold = 0
  end type
  type(point), target :: points(3, n)
  complex(real32), target :: z(3, n)
  real(real32), target :: both(7, 2 * n), both3(6, 7, 10), shifted(3, 7, 11), both4(6, 7, 5, 2), shifted4(3, 7, 5, 3)
  real(real32), pointer :: from_zero(:, :)
  real(real32), allocatable, target :: unallocated(:, :)
  character(300) :: message
  character(4096) :: path
  integer :: i, j, stat, claims
  real(real64) :: low, high

  claims = 0
  message = ''
  call get_command_argument(1, path)
  call model%load(path)
  call plan%compile(model)
  call claim(model%inputs() == 3 .and. model%outputs() == 3, 'the model counts its features')
  call claim(plan%inputs() == 3 .and. plan%outputs() == 3, 'so does the plan')
  call claim(index(plan%description(), '3-100-3') > 0, 'the plan describes itself')
  do i = 1, n
    x(:, i) = [0.1, 0.2, 0.3] * real(i - 20)
  end do
  call plan%evaluate(x, y)
  call claim(any(y /= 0), 'the net answers')

  xt = transpose(x)
  call plan%evaluate(xt, yt, feature_dimension=2)
  call claim(all(transpose(yt) == y), 'features along either dimension')

  wide = -1
  out = -1
  wide(2:6:2, 1::2) = x
  call plan%evaluate(wide(2:6:2, 1::2), out(5:1:-2, 3::3))
  call claim(all(out(5:1:-2, 3::3) == y), 'sections with strides, backward too')
  call claim(all(out(2:4:2, :) == -1) .and. all(out(:, 1::3) == -1), 'and nothing beside them is touched')

  one = -1
  call plan%evaluate(x(:, 9), one)
  call claim(all(one == y(:, 9)), 'rank 1 is one sample')

  x3 = reshape(x, shape(x3))
  call plan%evaluate(x3, y3)
  call claim(all(reshape(y3, shape(y)) == y), 'rank 3, features first')
  do j = 1, 3
    xm(:, j, :) = x3(j, :, :)
    xl(:, :, j) = x3(j, :, :)
  end do
  call plan%evaluate(xm, ym, feature_dimension=2)
  call plan%evaluate(xl, yl, feature_dimension=3)
  call claim(all([(all(ym(:, j, :) == y3(j, :, :)), j=1, 3)]), 'rank 3, features in the middle')
  call claim(all([(all(yl(:, :, j) == y3(j, :, :)), j=1, 3)]), 'rank 3, features last')

  ! In place, interleaved, and where a slice would be read after another was written there.
  both3(:3, :, :) = x3
  both3(4:, :, :) = 0
  call plan%evaluate(both3(:3, :, :), both3(4:, :, :))
  call claim(all(both3(4:, :, :) == y3) .and. all(both3(:3, :, :) == x3), 'rank 3, side by side in one array')
  call plan%evaluate(both3(:3, :, :), both3(:3, :, :))
  call claim(all(both3(:3, :, :) == y3), 'rank 3, in place')
  call plan%evaluate(xm(:, :, 10:1:-1), ym, feature_dimension=2)
  call claim(all([(all(ym(:, j, 10:1:-1) == y3(j, :, :)), j=1, 3)]), 'rank 3, slices backward')
  call plan%evaluate(xm(:, :, :0), ym(:, :, :0), feature_dimension=2, stat=stat)
  call claim(stat == lockstep_ok, 'no slices are no error')
  shifted(:, :, 1:10) = x3
  call plan%evaluate(shifted(:, :, 1:10), shifted(:, :, 2:11), stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, 'another slice of in') > 0, 'slices that overlap are named')
  call claim(all(shifted(:, :, 1:10) == x3), 'and nothing was written')
  call plan%evaluate(shifted(:, :, 10:1:-1), shifted(:, :, 2:11), stat=stat)
  call claim(stat == lockstep_invalid_argument, 'so are slices that overlap backward')

  ! Rank 4: points of a grid, in two slabs.
  x4 = reshape(x, shape(x4))
  call plan%evaluate(x4, y4)
  call claim(all(reshape(y4, shape(y)) == y), 'rank 4, features first')
  do j = 1, 3
    x4m(:, :, j, :) = x4(j, :, :, :)
    x4l(:, :, :, j) = x4(j, :, :, :)
  end do
  call plan%evaluate(x4m, y4m, feature_dimension=3)
  call plan%evaluate(x4l(:, :, 2:1:-1, :), y4l(:, :, 2:1:-1, :), feature_dimension=4)
  call claim(all([(all(y4m(:, :, j, :) == y4(j, :, :, :)), j=1, 3)]), 'rank 4, features in the middle')
  call claim(all([(all(y4l(:, :, :, j) == y4(j, :, :, :)), j=1, 3)]), 'rank 4, features last')
  both4(:3, :, :, :) = x4
  both4(4:, :, :, :) = 0
  call plan%evaluate(both4(:3, :, :, :), both4(4:, :, :, :))
  call claim(all(both4(4:, :, :, :) == y4) .and. all(both4(:3, :, :, :) == x4), 'rank 4, side by side in one array')
  call plan%evaluate(both4(:3, :, :, :), both4(:3, :, :, :))
  call claim(all(both4(:3, :, :, :) == y4), 'rank 4, in place')
  shifted4(:, :, :, 1:2) = x4
  call plan%evaluate(shifted4(:, :, :, 1:2), shifted4(:, :, :, 2:3), stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, 'another slab of x') > 0, 'slabs that overlap are named')
  call claim(all(shifted4(:, :, :, 1:2) == x4), 'and nothing was written there')
  call plan%evaluate(x4, y4, feature_dimension=5, stat=stat)
  call claim(stat == lockstep_invalid_argument, 'rank 4 has no fifth dimension')

  call plan64%compile(model, precision=lockstep_float64)
  x64 = real(x, real64)
  call plan64%evaluate(x64, y64)
  call claim(maxval(abs(y64 - y)) < 1e-4 * maxval(abs(y64)), 'float64 arrays')
  call plan%evaluate(x(:, 1:0), y(:, 1:0), stat=stat)
  call claim(stat == lockstep_ok, 'no samples are no error')
  call plan%compile(model, cpu_target='scalar')
  yt = 0
  call plan%evaluate(xt, yt, feature_dimension=2)
  call claim(all(transpose(yt) == y), 'another instruction set gives the same bits')

  call plan%evaluate(x64, y64, stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, 'float32 plan') > 0, 'the wrong precision is named')
  call plan%evaluate(xt, yt, stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, 'x: found 70 features') > 0, 'wrong widths are named')
  call plan%evaluate(x(1, :), y(1, :), stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. &
             index(message, 'x: found 70 features in an array of rank 1, which is one sample, expected 3; give') == 1, &
             'many samples in rank 1 are told from features that lie elsewhere')
  call plan%evaluate(x, y(:, 2:), stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, 'found 69 samples') > 0, 'so are wrong counts')
  call plan%evaluate(y(:, 2:), y(:, :size(y, 2) - 1), stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, 'overlaps') > 0, 'so are arrays that overlap')
  call plan%compile(model, cpu_target='mmx', stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, '"mmx"') > 0, 'an unknown target is named')
  call model%load('no_such_file.safetensors', stat=stat, errmsg=message)
  call claim(stat == lockstep_bad_file .and. index(message, 'no_such_file') > 0, 'a missing file is named')
  call claim(model%inputs() == 3, 'a failed load leaves the model as it was')
  call plan%jacobian(x, jac, stat=stat, errmsg=message)
  call claim(stat == lockstep_unsupported .and. index(message, 'derivatives=.true.') > 0, 'Jacobians must be asked for')
  call plan%jvp(x, x, y, stat=stat, errmsg=message)
  call claim(stat == lockstep_unsupported .and. index(message, 'derivatives') > 0, 'derivatives must be asked for')
  call plan%compile(model, derivatives=.true.)
  call plan64%compile(model, precision=lockstep_float64, derivatives=.true.)
  call random_number(v64)
  call random_number(w64)
  call plan64%jvp(x64, v64, jv64)
  call plan64%vjp(x64, w64, jw64)
  ! Two sums of 210 products of some 400 rounded operations each; a wrong sign or order shows in the first digit.
  call claim(abs(sum(w64 * jv64) - sum(jw64 * v64)) < 1e-11 * sum(abs(w64 * jv64)), 'jvp and vjp are transposes')
  call plan%jvp(x, real(v64, real32), y)
  call claim(maxval(abs(y - jv64)) < 1e-4 * maxval(abs(jv64)), 'jvp in float32')
  call plan%jvp(transpose(x), transpose(real(v64, real32)), yt, feature_dimension=2)
  call claim(all(transpose(yt) == y), 'jvp along either dimension')
  call plan%jvp(x(:, 9), real(v64(:, 9), real32), one)
  call claim(all(one == y(:, 9)), 'jvp of one sample')
  call plan%vjp(x, real(w64, real32), y)
  call plan%vjp(x(:, 9), real(w64(:, 9), real32), one)
  call claim(all(one == y(:, 9)), 'vjp of one sample')
  call plan%jvp(x, x(:, 2:), y, stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, 'x_dot: found 69 samples') == 1, 'jvp names x_dot')
  call plan%jvp(x, x, y(:2, :), stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, 'y_dot: found 2 features') == 1, 'jvp names y_dot')
  call plan%vjp(x, y(:, 2:), y, stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, 'y_bar: found 69 samples') == 1, 'vjp names y_bar')
  call plan%vjp(x(:, 9), x(:, 9), one(:2), stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, 'x_bar: found 2 features') == 1, 'vjp names x_bar')

  ! Whole Jacobians are products with unit vectors.
  call plan64%evaluate(x64, y64)
  do i = 1, 3
    v64 = 0
    v64(i, :) = 1
    call plan64%jvp(x64, v64, expected64(:, i, :))
  end do
  call plan64%jacobian(x64, jac64)
  call claim(all(jac64 == expected64), 'a Jacobian is made of products, column by column')
  w64 = 0
  jac64 = 0
  call plan64%jacobian(x64, jac64, w64)
  call claim(all(jac64 == expected64) .and. all(w64 == y64), 'the net''s values come with it')
  call plan64%jacobian(x64(:, 9), jac64(:, :, 1), w64(:, 1))
  call claim(all(jac64(:, :, 1) == expected64(:, :, 9)) .and. all(w64(:, 1) == y64(:, 9)), 'a Jacobian of one sample')
  call plan64%jacobian(transpose(x64), last64, feature_dimension=2)
  call claim(all([((all(last64(:, j, i) == expected64(j, i, :)), j=1, 3), i=1, 3)]), 'of features last')
  ! The same of a derivative that is a net.
  call derivative%derivative_of(model, lockstep_jacobian)
  call with_products%compile(derivative, precision=lockstep_float64)
  call with_products%evaluate_ports([lockstep_array(x64)], [lockstep_array(w64), lockstep_array(rows64)])
  call claim(all(w64 == y64) .and. all([((all(rows64(3 * j + i - 3, :) == expected64(j, i, :)), j=1, 3), i=1, 3)]), &
             'a Jacobian is a net, by rows')
  call with_products%free()
  call derivative%derivative_of(model, lockstep_jvp)
  call with_products%compile(derivative, precision=lockstep_float64)
  call claim(with_products%input_port('x_dot') == 2 .and. with_products%output_port('y_dot') == 2, 'of named ports')
  call with_products%evaluate_ports([lockstep_array(x64), lockstep_array(v64)], [lockstep_array(w64), lockstep_array(jw64)])
  call claim(all(w64 == y64) .and. all(jw64 == expected64(:, 3, :)), 'so are products')
  call derivative%derivative_of(derivative, lockstep_vjp, stat=stat, errmsg=message)
  call claim(stat == lockstep_unsupported .and. index(message, 'a derivative already') > 0, 'of a net, once')
  call derivative%derivative_of(model, 7, stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, 'which: found 7') == 1, 'of three kinds')
  call with_products%free()
  call derivative%free()
  w64 = x64
  jac64 = 0
  call plan64%jacobian(w64(3:1:-1, n:1:-2), jac64(3:1:-1, :, ::2), w64(3:1:-1, n:1:-2))
  call plan64%jacobian(x64(3:1:-1, n:1:-2), expected64(:, :, :n / 2), y64(:, :n / 2))
  call claim(all(jac64(3:1:-1, :, ::2) == expected64(:, :, :n / 2)) .and. all(jac64(:, :, 2::2) == 0) .and. &
             all(w64(3:1:-1, n:1:-2) == y64(:, :n / 2)), 'of sections, values in the place of x')
  call plan%jacobian(x, jac)
  do i = 1, 3
    yt = 0
    yt(:, i) = 1
    call plan%jvp(x, transpose(yt), y)
    call claim(all(jac(:, i, :) == y), 'a Jacobian in float32')
  end do
  call plan%jacobian(x(:, 9), jac(:, :, 1))
  call claim(all(jac(:, :, 1) == jac(:, :, 9)), 'of one sample in float32')
  call plan%jacobian(x, jac(:, :2, :), stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. &
             index(message, 'jac: found the shape (3, 2, 70), expected (3, 3, 70)') == 1, 'shapes of Jacobians are told')
  call plan%jacobian(x, jac, y(:, 2:), stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, 'y: found 69 samples') == 1, 'and of values with them')
  call plan%jacobian(x, jac, feature_dimension=3, stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, 'feature_dimension: found 3') == 1, &
             'and feature dimensions that are none')
  call plan%jacobian(jac(:, 1, :), jac, stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, 'jacobian: found memory that overlaps in') == 1, &
             'a Jacobian lies apart from what it is of')
  call plan%load('no_such_file.plan', stat=stat, errmsg=message)
  call claim(stat == lockstep_bad_file .and. index(message, 'no_such_file') > 0, 'a missing plan file is named')

  ! On a device that is the host: the test's own CUDA component.
  call plan%evaluate(x, y)
  yd = 0
  call device_plan%compile(model)
  call claim(device_plan%inputs() == size(x, 1) .and. device_plan%outputs() == size(y, 1), 'a device plan has its sizes')
  xd = x
  call device_plan%enqueue(c_null_ptr, size(x, 2), c_loc(xd), size(x, 1), 1, c_loc(yd), size(y, 1), 1)
  call claim(all(yd == y), 'a device plan has the bits of the CPU')
  yd = 0
  call device_plan%enqueue_ports(c_null_ptr, n, [lockstep_device_array(c_loc(xd), 3, 1)], &
                                 [lockstep_device_array(c_loc(yd), 3, 1)])
  call claim(all(yd == y), 'so it has by ports')
  call claim(device_plan%input_ports() == 1 .and. device_plan%output_ports() == 1 .and. &
             device_plan%output_port_name(1) == 'y' .and. device_plan%output_port_name(2) == '', 'a device plan has ports')
  call claim(device_plan%output_port('y') == 1 .and. device_plan%input_port('x') == 1, 'a device plan has them by name')
  call claim(plan%output_port('y') == 1 .and. plan%input_port('x ') == 1, 'ports are found by name')
  call claim(plan%input_port('y', stat, message) == 0, 'a port that is none is 0')
  call claim(stat == lockstep_invalid_argument .and. index(message, 'port: found "y", expected one of x') == 1, &
             'and the others are named')
  call device_plan%enqueue_ports(c_null_ptr, n, [lockstep_device_array(c_loc(xd), 3, 1)], &
                                 [lockstep_device_array ::], stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, 'one for each port') > 0, 'missing ports are named')
  call device_plan%compile(model, device=5, stat=stat, errmsg=message)
  call claim(stat == lockstep_unsupported .and. index(message, 'cuda:5') > 0, 'a device that is not there is named')
  call device_plan%free()
  call device_plan%enqueue(c_null_ptr, 1, c_loc(xd), 1, 1, c_loc(yd), 1, 1, stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument, 'a freed device plan is refused')

  xd64 = x
  call plan%evaluate_ports([lockstep_array(xd), lockstep_array(xd64)], [lockstep_array(yd)], stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, 'two precisions') > 0, &
             'inputs of two precisions are refused')

  ! Arrays of ports lie where the host keeps them, whatever they are part of.
  call plan%evaluate(x, y)
  points%temperature = x
  call plan%evaluate_ports([lockstep_array(points%temperature)], [lockstep_array(points%flux)])
  call claim(all(points%flux == y) .and. all(points%depth == -1), 'components of derived types')
  points%flux = 0
  call plan%evaluate_ports([lockstep_array(points(3:1:-1, 1:n:3)%temperature)], [lockstep_array(points(:, n:1:-3)%flux)])
  points(:, n:1:-3)%temperature = points(3:1:-1, 1:n:3)%temperature
  call plan%evaluate(points(:, n:1:-3)%temperature, y(:, 1::3))
  call claim(all(points(:, n:1:-3)%flux == y(:, 1::3)), 'sections of them, backward too')
  points%warm = x
  call plan64%evaluate(points%warm, y64)
  call plan64%evaluate_ports([lockstep_array(points%warm)], [lockstep_array(points%cold)])
  call claim(all(points%cold == y64), 'components in float64')
  points%cold = 0
  call plan64%evaluate_ports([lockstep_array(points(:, 9)%warm)], [lockstep_array(points(:, 9)%cold)])
  call claim(all(points(:, 9)%cold == y64(:, 9)) .and. all(points(:, :8)%cold == 0), 'one sample of them')
  call plan%evaluate(x, y)
  z = cmplx(x, 0, real32)
  call plan%evaluate_ports([lockstep_array(z%re)], [lockstep_array(z%im)])
  call claim(all(aimag(z) == y) .and. all(real(z) == x), 'real and imaginary parts')
  both = -1
  both(2:6:2, 1::2) = x
  call plan%evaluate_ports([lockstep_array(both(2:6:2, 1::2))], [lockstep_array(both(5:1:-2, 2::2))])
  call claim(all(both(5:1:-2, 2::2) == y) .and. all(both(7, :) == -1), 'sections with strides')
  from_zero(0:, 0:) => both(5:1:-2, 2::2)
  from_zero = 0
  call plan%evaluate_ports([lockstep_array(xd)], [lockstep_array(from_zero)])
  call claim(all(both(5:1:-2, 2::2) == y), 'pointers, from whatever bounds')
  from_zero => null()
  call plan%evaluate_ports([lockstep_array(xd)], [lockstep_array(from_zero)], stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, 'y "y": found an array that is not all') == 1, &
             'no array is refused')
  call plan%evaluate_ports([lockstep_array(xd)], [lockstep_array(unallocated)], stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, 'y "y": found an array that is not all') == 1, &
             'one that is not allocated too')
  call plan%evaluate(x, y(1:0, :), stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, 'y: found 0 features along dimension 1, expected 3; al') &
             == 1, 'no features may be an array that is not allocated')
  allocate (unallocated(3, size(x, 2)))
  deallocate (unallocated)
  call plan%evaluate(x, unallocated, stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, 'y: found an array that is not allocated, or') == 1, &
             'nor is one that was deallocated')
  call plan%evaluate_ports([lockstep_array(xd, 7)], [lockstep_array(yd)], stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, 'found feature_dimension 7, expected 1 or 2') > 0, &
             'a feature dimension that is none is named')
  from_zero => packed_temperature(n)
  if (index(steps_of(from_zero), 'odd') > 0) then
    call plan%evaluate_ports([lockstep_array(xd)], [lockstep_array(from_zero)], stat=stat, errmsg=message)
    call claim(stat == lockstep_invalid_argument .and. index(message, 'found neighbours 5 bytes apart, expected a mult') > 0, &
               'components at odd places are refused')
  end if

  call plan64%compile(never_loaded, stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, 'call model%load first') > 0, 'a model must be loaded')
  call two_ports%load(path(:index(path, '/', back=.true.)) // 'exported/graph_ports_dynamo.onnx', stat=stat, errmsg=message)
  if (stat /= lockstep_unsupported) then  ! as in builds that read no ONNX
    call plan64%compile(two_ports, precision=lockstep_float64)
    call plan64%evaluate(x64, y64, stat=stat, errmsg=message)
    call claim(stat == lockstep_invalid_argument .and. index(message, 'plan: found 2 input ports, expected one; ') == 1 .and. &
               index(message, 'evaluate_ports') > 0, 'arrays are not blamed for ports')
    call two_ports%free()
  end if

  call model%input_range(1, low, high)
  call claim(low <= -huge(low) .and. high >= huge(high) .and. model%input_unit(1) == '', 'a file need not tell ranges')
  call model%load(path(:index(path, '/', back=.true.)) // 'qlknn_7_11_tanh_10_133x5_8.safetensors')
  call claim(model%input_name(5) == 'q' .and. model%output_name(8) == 'gamma_max', 'features are named')
  call model%input_range(5, low, high)
  call claim(abs(low - 0.66_real64) < 1e-6_real64 .and. abs(high - 30) < 1e-6_real64, 'and have ranges of the training data')
  call model%output_range(8, low, high)
  call claim(low <= -huge(low) .and. high >= huge(high), 'where the file tells them')
  call model%input_range(11, low, high)
  call claim(low <= -huge(low) .and. high >= huge(high) .and. model%input_unit(11) == '', 'a feature that is none has none')

  ! 10 inputs, 8 outputs: row by row.
  call plan64%compile(model, precision=lockstep_float64, derivatives=.true.)
  call random_number(ten)
  call plan64%jacobian(ten, jac10, eight)
  do i = 1, 8
    bars = 0
    bars(i, :) = 1
    call plan64%vjp(ten, bars, products)
    call claim(all(jac10(i, :, :) == products), 'a Jacobian of fewer outputs than inputs')
  end do
  call plan64%evaluate(ten, bars)
  call claim(all(bars == eight), 'and its values')

  call plan%free()
  call plan%evaluate(x, y, stat=stat, errmsg=message)
  call claim(stat == lockstep_invalid_argument .and. index(message, 'plan%compile') > 0, 'a freed plan is refused')
  call plan64%free()
  call model%free()
  call model%free()
  write (*, '(a, i0, a)') 'all ', claims, ' claims hold'

contains
  ! Whether neighbours are a whole number of elements apart.
  function steps_of(a)
    real(real32), pointer, intent(in) :: a(:, :)
    character(4) :: steps_of
    integer(c_intptr_t) :: bytes
    bytes = transfer(c_loc(a(2, 1)), bytes) - transfer(c_loc(a(1, 1)), bytes)
    steps_of = merge('odd ', 'even', mod(bytes, 4_c_intptr_t) /= 0)
  end function

  subroutine claim(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    claims = claims + 1
    if (holds) return
    write (error_unit, '(2a)') 'does not hold: ', what
    write (error_unit, '(2a)') 'last message: ', message
    error stop 1
  end subroutine
end program
