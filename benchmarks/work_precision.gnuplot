# Error against right-hand-side evaluations, log-log, from work_precision.csv:
#   gnuplot -e "csv='benchmarks/results/work_precision.csv'; out='benchmarks/results/work_precision.png'" \
#       benchmarks/work_precision.gnuplot
if (!exists("csv")) csv = "benchmarks/results/work_precision.csv"
if (!exists("out")) out = "benchmarks/results/work_precision.png"
set terminal pngcairo size 1500,900 font "sans,11" linewidth 1.6
set output out
set datafile separator ","
set logscale xy
set format x "10^{%L}"
set format y "10^{%L}"
set grid back linecolor "#d8d8d8" linewidth 0.6
set border 3 linecolor "#606060"
set tics nomirror
set xlabel "evaluations of the right-hand side"
set ylabel "relative error at the end"
set yrange [1e-15:1]
problems = "kepler lotka_volterra van_der_pol pleiades arenstorf lorenz"
methods = "euler heun midpoint rk4 bs3 dopri5 tsit5 vern7 dop853 vern9"
colours = "#999999 #7fc97f #b8a030 #1b9e77 #e6872b #7570b3 #1f5fbf #00a0a0 #c0143c #202020"
set multiplot layout 2,3 title "Work and precision, float64 (one trajectory, end state against the 113-bit oracle)" \
    font "sans,14"
do for [i = 1:6] {
  problem = word(problems, i)
  set title system("echo " . problem . " | tr _ ' '")
  if (i == 1) { set key left bottom samplen 1.5 } else { unset key }
  plot for [m = 1:words(methods)] csv using \
      ((strcol(1) eq problem && strcol(2) eq word(methods, m) && strcol(3) eq "f64") ? $5 : NaN):8 \
      with linespoints pointtype 7 pointsize 0.6 linecolor rgb word(colours, m) title word(methods, m)
}
unset multiplot
