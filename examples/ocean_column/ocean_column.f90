! The ocean of ocean_column.cpp in Fortran, to the same bits: T(longitude, latitude, level), the closure in place on it.
! usage: ocean_column MODEL LONGITUDES LATITUDES STEPS
program ocean_column
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use lockstep
  implicit none
  integer, parameter :: levels = 32
  real(real32), parameter :: depth = 10, time_step = 3600, exchange = time_step / depth, spread_share = 0.002_real32
  real(real32), allocatable :: t(:, :, :), next(:, :, :), flux(:, :, :)
  real(real32) :: s, z, surface, uneven, heating, vertical, horizontal, here, west, east, south, north, above, below
  real(real64) :: before, supplied, budget
  type(lockstep_model) :: model
  type(lockstep_plan) :: plan
  character(4096) :: path
  integer :: nx, ny, steps, step, x, y, k
  integer(int64) :: checksum, bits, started, closed, ended, rate, in_closure, in_all

  if (command_argument_count() /= 4) then
    write (*, '(a)') 'usage: ocean_column MODEL LONGITUDES LATITUDES STEPS'
    stop 2
  end if
  nx = whole(2)
  ny = whole(3)
  steps = whole(4)
  call get_command_argument(1, path)
  call model%load(path)
  call plan%compile(model)
  call model%free()

  allocate (t(nx, ny, levels), next(nx, ny, levels), flux(nx, ny, levels - 1))
  do k = 1, levels
    do y = 1, ny
      s = latitude(y)
      z = (real(k - 1, real32) + 0.5_real32) * (1 / 12.0_real32)
      surface = 26 * (1 - s * s)
      do x = 1, nx
        uneven = real(mod(7 * (x - 1) + 13 * (y - 1) + 5 * (k - 1), 64), real32) * (1 / 640.0_real32)
        t(x, y, k) = (2 + surface / (1 + z * z)) + uneven
      end do
    end do
  end do
  before = sum(real(t, real64))
  supplied = 0
  do y = 1, ny
    supplied = supplied + real(surface_heating(y), real64) * nx
  end do

  in_closure = 0
  in_all = 0
  do step = 1, steps
    call system_clock(started, rate)
    call plan%evaluate(t, flux, feature_dimension=3)
    call system_clock(closed)
    do k = 1, levels
      do y = 1, ny
        heating = 0
        if (k == 1) heating = surface_heating(y)
        do x = 1, nx
          here = t(x, y, k)
          west = t(merge(nx, x - 1, x == 1), y, k)
          east = t(merge(1, x + 1, x == nx), y, k)
          south = t(x, max(y - 1, 1), k)
          north = t(x, min(y + 1, ny), k)
          above = 0
          below = 0
          if (k > 1) above = flux(x, y, k - 1)
          if (k < levels) below = flux(x, y, k)
          vertical = exchange * (above - below) + heating
          horizontal = spread_share * (((east - here) - (here - west)) + ((north - here) - (here - south)))
          next(x, y, k) = here + (vertical + horizontal)
        end do
      end do
    end do
    call move_both()
    call system_clock(ended)
    in_closure = in_closure + closed - started
    in_all = in_all + ended - started
  end do
  budget = before + steps * supplied

  checksum = 0
  do k = 1, levels
    do y = 1, ny
      do x = 1, nx
        bits = iand(int(transfer(t(x, y, k), 0_int32), int64), 4294967295_int64)
        checksum = checksum + bits * (mod(int(y - 1, int64) * nx + x - 1 + 31 * (k - 1), 251_int64) + 1)
      end do
    end do
  end do
  write (*, '(4(i0, a), es7.1, a)') nx, ' x ', ny, ' columns, ', levels, ' levels, ', steps, ' steps: heat is ', &
      abs(sum(real(t, real64)) - budget) / before, ' of itself from its budget'
  write (*, '(a, i0)') 'checksum ', checksum
  if (in_all > 0) write (*, '(a, f0.2, a, i0, a)') 'all steps ', real(in_all) / rate, ' s, the closure''s share ', &
      nint(100 * real(in_closure) / in_all), ' %'
  call plan%free()
  deallocate (t, next, flux)  ! a program's arrays outlive it otherwise, which leak checkers report

contains

  integer function whole(position)
    integer, intent(in) :: position
    character(32) :: text
    integer :: status
    call get_command_argument(position, text)
    read (text, *, iostat=status) whole
    if (status /= 0 .or. whole < merge(0, 1, position == 4)) then
      write (*, '(a)') 'ocean_column: longitudes, latitudes and steps are whole numbers'
      stop 2
    end if
  end function

  pure real(real32) function latitude(y)
    integer, intent(in) :: y
    latitude = real(2 * (y - 1) + 1 - ny, real32) / real(ny, real32)
  end function

  pure real(real32) function surface_heating(y)
    integer, intent(in) :: y
    real(real32) :: s
    s = latitude(y)
    surface_heating = exchange * 5e-5_real32 * (1 - 3 * s * s)
  end function

  ! The new state becomes the present one; the old one's memory is written next.
  subroutine move_both()
    real(real32), allocatable :: old(:, :, :)
    call move_alloc(t, old)
    call move_alloc(next, t)
    call move_alloc(old, next)
  end subroutine
end program
