! Any net inside a Fortran program: asks the net for its ports, gives each an array of its own, evaluates them all at
! once, then multiplies with the Jacobian and its transpose. Prints what ports.c prints.
!   usage: ports MODEL
program ports
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use lockstep
  implicit none
  integer, parameter :: samples = 45
  real(real64), parameter :: qlknn(10) = [12.0_real64, 5.35_real64, 3.06_real64, 9.57_real64, 5.74_real64, 2.72_real64, &
                                          0.75_real64, 1.86_real64, -2.26_real64, 0.83_real64]
  type(lockstep_model) :: model
  type(lockstep_plan) :: plan
  type(lockstep_array), allocatable :: in(:), back(:), out(:), dots(:)
  real(real64), allocatable, target :: x(:, :), x_bar(:, :), y(:, :), y_dot(:, :)  ! (sample, feature)
  real(real64) :: base
  character(4096) :: path
  integer :: i, k, s, first, width
  integer(int64) :: total

  call get_command_argument(1, path)
  call model%load(path)
  call plan%compile(model, precision=lockstep_float64, derivatives=.true.)
  call model%free()
  allocate (x(samples, plan%inputs()), x_bar(samples, plan%inputs()))
  allocate (y(samples, plan%outputs()), y_dot(samples, plan%outputs()))
  do k = 1, size(x, 2)
    base = real(mod((k - 1) * 37 + 11, 64), real64) / 16 - 2
    if (size(x, 2) == 10) base = qlknn(k)
    do s = 1, samples
      x(s, k) = base * (1 - real(s - 1, real64) / 256)
    end do
  end do
  allocate (in(plan%input_ports()), back(plan%input_ports()), out(plan%output_ports()), dots(plan%output_ports()))
  first = 1
  do i = 1, size(in)
    width = plan%input_port_features(i)
    in(i) = lockstep_array(x(:, first:first + width - 1), feature_dimension=2)
    back(i) = lockstep_array(x_bar(:, first:first + width - 1), feature_dimension=2)
    first = first + width
  end do
  first = 1
  do i = 1, size(out)
    width = plan%output_port_features(i)
    out(i) = lockstep_array(y(:, first:first + width - 1), feature_dimension=2)
    dots(i) = lockstep_array(y_dot(:, first:first + width - 1), feature_dimension=2)
    first = first + width
  end do
  call plan%evaluate_ports(in, out)
  call plan%jvp_ports(in, in, dots)    ! J x
  call plan%vjp_ports(in, out, back)   ! J^T y
  first = 1
  do i = 1, size(out)
    width = plan%output_port_features(i)
    write (*, '(a, 1x, i0, 1x, i0)') plan%output_port_name(i), width, checksum(0_int64, y(:, first:first + width - 1))
    first = first + width
  end do
  total = checksum(checksum(checksum(0_int64, y), y_dot), x_bar)
  write (*, '(a, i0)') 'checksum ', total
  call plan%free()
  deallocate (in, back, out, dots, x, x_bar, y, y_dot)

contains
  integer(int64) function checksum(before, numbers)
    integer(int64), intent(in) :: before
    real(real64), intent(in) :: numbers(:, :)
    integer(int64) :: bits
    integer :: i, j
    checksum = before
    do j = 1, size(numbers, 2)
      do i = 1, size(numbers, 1)
        bits = transfer(numbers(i, j), bits)
        checksum = mod(checksum * 1009 + iand(bits, 4294967295_int64) + 7 * ishft(bits, -32), 1000000007_int64)
      end do
    end do
  end function
end program
