! Trains a surrogate of a heat equation in Fortran, on two replicas. The program advances u_t = D u_xx
! by an explicit scheme. From each time step the net learns the change of a cell from the cell and its
! neighbours. Then the surrogate alone computes the next 50 time steps.
! Run it in this folder: make fortran && ./heat_surrogate
module surrogate
  use choir
  implicit none
  integer, parameter :: cells = 40, steps = 10000, rollout = 50
  real(c_float), parameter :: number = 0.2 ! D dt / dx^2
  type(c_ptr) :: net, adam
  real(c_float), target :: stencil(3, cells), change(1, cells) ! Choir's [cells, 3] and [cells, 1]
  real(c_float) :: u(0:cells + 1)
contains

  subroutine begin(wave)
    integer, intent(in) :: wave
    integer :: i
    u = [(sin(3.14159265 * wave * i / (cells + 1)) + 0.5 * sin(3.14159265 * (wave + 3) * i / (cells + 1)), &
        i = 0, cells + 1)]
  end subroutine

  subroutine look()
    integer :: i
    stencil = reshape([(u(i - 1:i + 1), i = 1, cells)], [3, cells])
  end subroutine

  subroutine advance() ! the program's simulation
    integer :: i
    call look()
    change(1, :) = [(number * (u(i - 1) - 2 * u(i) + u(i + 1)), i = 1, cells)]
    u(1:cells) = u(1:cells) + change(1, :)
    change = 10 * change
  end subroutine

  function learn(r, user) bind(c) result(status) ! the step of one replica
    type(choir_replica), intent(inout) :: r
    type(c_ptr), value :: user
    integer(c_int) :: status
    type(c_ptr) :: tape, y, loss
    tape = choir_tape_begin(r%frame)
    y = choir_layer_apply(net, choir_replica_arg(r, "stencil" // c_null_char))
    loss = choir_replica_average_loss(r, choir_mean_squared_error( &
        choir_replica_arg(r, "change" // c_null_char), y))
    status = choir_replica_return(r, "loss" // c_null_char, loss)
    if (status == CHOIR_OK) status = choir_optimizer_minimize(adam, loss, tape)
  end function
end module

program heat_surrogate
  use surrogate
  implicit none
  type(choir_strategy_options) :: options
  type(choir_optimizer_options) :: rate
  type(choir_scope) :: scope
  type(c_ptr) :: strategy, batch, results = c_null_ptr, frame, y
  real(c_float) :: truth(0:cells + 1)
  real(c_float) :: predicted(1, cells)
  real(c_double) :: loss
  integer :: step

  options%replicas = 2
  strategy = choir_mirrored_strategy_new(options)
  call choir_must_have(strategy)
  call choir_must(choir_scope_enter(scope, strategy))
  net = choir_sequential_new(2_c_size_t, [ &
      choir_dense_new("hidden" // c_null_char, 3_c_int64_t, 16_c_int64_t, CHOIR_TANH_VALUE), &
      choir_dense_new("change" // c_null_char, 16_c_int64_t, 1_c_int64_t, CHOIR_LINEAR)])
  rate%learning_rate = 2e-3_c_double
  adam = choir_optimizer_new(CHOIR_ADAM, rate)
  call choir_must_have(net)
  call choir_must_have(adam)
  call choir_must(choir_scope_exit(scope))

  batch = choir_values_new(strategy)
  do step = 1, steps
    if (mod(step, 5) == 1) call begin(1 + mod(step / 5, 6))
    call advance()
    call choir_values_clear(batch)
    frame = choir_values_frame(batch)
    call choir_must(choir_values_split(batch, "stencil" // c_null_char, choir_array(frame, stencil)))
    call choir_must(choir_values_split(batch, "change" // c_null_char, choir_array(frame, change)))
    call choir_must(choir_strategy_run(strategy, c_funloc(learn), c_null_ptr, batch, results))
    if (mod(step, 2500) == 0) then
      loss = choir_tensor_number(choir_strategy_reduce(strategy, CHOIR_SUM_VALUE, &
          choir_values_find(results, "loss" // c_null_char), CHOIR_NO_AXIS))
      print '(a, i0, a, es9.2)', "step ", step, ": loss ", loss
    end if
  end do

  call begin(2) ! first the scheme, then the surrogate from the same start
  do step = 1, rollout
    call advance()
  end do
  truth = u
  call begin(2)
  do step = 1, rollout
    call look()
    frame = choir_frame_new(c_null_ptr)
    y = choir_layer_apply(net, choir_array(frame, stencil))
    call choir_must(choir_frame_status(frame))
    call choir_must(choir_tensor_to_array(y, predicted))
    u(1:cells) = u(1:cells) + predicted(1, :) / 10
    call choir_frame_free(frame)
  end do
  print "(a, f6.3)", "relative error of the surrogate after 50 steps: ", norm2(u - truth) / norm2(truth)

  call choir_values_free(batch)
  call choir_values_free(results)
  call choir_strategy_free(strategy)
end program
