! A host program in Fortran: the columns of closure.c, to the same bits.
! Temperatures lie as the host keeps them, T(column, level); the net reads the 32 levels of every column and writes 31
! interface fluxes, in place. What leaves one cell enters the next: heat is conserved.
! usage: closure MODEL
program closure
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use lockstep
  implicit none
  integer, parameter :: columns = 1000, levels = 32, steps = 20
  real(real32) :: temperature(columns, levels), flux(columns, levels - 1), moved(columns), height
  real(real64) :: before, after
  type(lockstep_model) :: model
  type(lockstep_plan) :: plan
  character(4096) :: path
  integer :: step, c, k
  integer(int64) :: checksum, bits

  if (command_argument_count() /= 1) then
    write (*, '(a)') 'usage: closure MODEL'
    stop 2
  end if
  call get_command_argument(1, path)
  call model%load(path)
  call plan%compile(model)
  call model%free()
  write (*, '(a)') plan%description()

  do k = 1, levels
    height = 1.0_real32 - real(k - 1, real32) / levels
    do c = 1, columns
      temperature(c, k) = height * height + real(mod(c - 1, 17), real32) * 0.0625_real32
    end do
  end do
  before = sum(real(temperature, real64))
  do step = 1, steps
    call plan%evaluate(temperature, flux, feature_dimension=2)
    do k = 1, levels - 1
      moved = 0.0078125_real32 * flux(:, k)
      temperature(:, k) = temperature(:, k) - moved
      temperature(:, k + 1) = temperature(:, k + 1) + moved
    end do
  end do
  after = sum(real(temperature, real64))
  call plan%free()

  checksum = 0
  do k = 1, levels
    do c = 1, columns
      bits = iand(int(transfer(temperature(c, k), 0_int32), int64), 4294967295_int64)
      checksum = checksum + bits * (mod(c - 1, 251) + 1)
    end do
  end do
  write (*, '(i0, a, i0, a, es7.1, a)') columns, ' columns, ', steps, ' steps: heat changed by ', &
      abs(after - before) / before, ' of itself'
  write (*, '(a, i0)') 'checksum ', checksum
end program
