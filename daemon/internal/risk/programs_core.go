package risk

// programsCore are files and folders, and what shows the state of the machine. How to add a line: table.go.
const programsCore = `
ls,dir,vdir : low read args=text -I,--ignore,-w,--width,-T,--tabsize,--hide,--block-size=val ; lists files
exa,eza,lsd : low read args=text -L,--level,-I,--ignore-glob,-s,--sort,-t,--time,--depth=val ; lists files
tree : low read args=text -L,-P,-I,--filelimit,--charset,--timefmt,-H,-T=val -o=write ; lists files
cat,tac,rev,zcat,gzcat,bzcat,xzcat,zstdcat,lz4cat,sum,md5sum,sha1sum,sha224sum,sha256sum,sha384sum,sha512sum,b2sum,b3sum,md5,comm,tsort :
	low read ; prints files
cksum,shasum : low read -a,--algorithm,-l,--length=val ; computes check sums
bat,batcat : low read -r,--line-range,--theme,-l,--language,--style,--paging,--tabs,--wrap,--terminal-width,-m,--map-syntax,-H,
	--highlight-line=val --pager=shell ; prints files
nl : low read -b,-d,-f,-h,-i,-l,-n,-s,-v,-w=val ; numbers lines
expand,unexpand,fold,fmt : low read -t,-w,-g,-p=val ; prints files
od,hexdump,hd : low read -A,-j,-N,-S,-t,-w,-e,-n,-s=val -f=read ; prints bytes
xxd : low read args=filter -c,-cols,-g,-groupsize,-l,-len,-s,-seek,-o,-n,-R=val ; prints bytes, or makes them of text
base64,base32,basenc : low read -w,--wrap=val ; encodes or decodes text
strings : low read -n,--bytes,-t,--radix,-e,--encoding,-T,-s=val ; prints the texts in a file
iconv : low read -f,-t,--from-code,--to-code=val -o,--output=write ; converts text
column : low read -s,--separator,-o,--output-separator,-c,--output-width,-N,--table-columns,-R,-H,-O,-E,-W,-n,-d,-l=val ; formats columns
pr,paste,join,ptx : low read -d,--delimiters,-1,-2,-t,-a,-v,-e,-o,-j,-l,-w,-h,-W,-S,-N,-n=val ; prints files side by side
head,tail : low read -n,-c,--lines,--bytes,-s,--pid=val ; prints a part of files
wc : low read args=text --files0-from=read ; counts lines and words
stat,file,readlink,realpath,basename,dirname,pathchk,namei,lsattr,getfacl : low read args=text -c,--format,-f,--printf,-m,--magic-file,-s,
	-t=val ; looks at files
du,df,ncdu,dust,duf : low read args=text --files0-from=read -d,--max-depth,-t,--threshold,-B,--block-size,--exclude,-X,--time-style,--output,-x=val -o=write ;
	shows how much space is used
diff,colordiff,difft,delta,vimdiff : low read -U,-C,-W,--width,--label,-x,--exclude,-I,-F,--to-file,--from-file,--tabsize=val -X,
	--exclude-from=read ; compares files
cmp : low read -i,--ignore-initial,-n,--bytes=val ; compares files
diff3,sdiff : low read -L,-W,-w,-I=val -o,--output=write --diff-program=shell ; compares files
less,more,most : low read do=sort -o,-O,--log-file=write -k,--lesskey-src=code -p,-P,-x,-y,-j,-b,-t=val ; shows files
touch : medium write do=touchonly -d,-r,-t,--date,--reference,--time=val ; makes files or changes their times
mkdir,mkfifo : medium write do=touchonly -m,--mode,-Z,--context=val ; makes folders
mknod : high write args=text ; makes a device
rm,unlink,srm,wipe,rimraf,del-cli : medium delete do=rm ; deletes files
shred : medium delete do=rm -n,--iterations,-s,--size=val --random-source=read ; deletes files for good
rmdir : medium delete do=rm ; deletes empty folders
trash,trash-put,gio-trash : medium delete args=text undo="take it out of the trash" ; moves files to the trash
cp,gcp,ditto : medium write args=copy -t,--target-directory=val -S,--suffix,--sparse,--reflink,--context=val ; copies files
mv,gmv,rename.ul : medium write args=move -t,--target-directory=val -S,--suffix=val ; moves files
rename,prename,mmv : high write ; renames files by a pattern
install,ginstall : medium write do=install -m,--mode,-o,--owner,-g,--group,-S,--suffix=val -t,--target-directory=val --strip-program=shell ;
	copies files and sets their rights
ln,link,glink : medium write do=ln -t,--target-directory=val -S,--suffix=val ; makes links
chmod,chown,chgrp,chcon : medium write do=chmod --reference=val ; changes who may do what with files
chattr,setcap : high privilege do=chmod -p,-v=val ; changes who may do what with files
setfacl : medium write do=chmod -m,--modify,-x,--remove=val -M,-X,--restore=read ; changes who may do what with files
umask,ulimit : medium shell-state look args=text ; shows or sets limits of this shell
mktemp,tempfile : medium write do=mktemp -p,--tmpdir=val --suffix=val ; makes a temporary file
stty,tset : medium shell-state look args=text -F,--file=val -a,-g,--all,--save? ; shows or changes settings of the terminal
truncate,fallocate : medium write args=write -s,--size,-r,--reference,-l,--length,-o,--offset=val ; changes the size of files
split,csplit : medium write do=split args=text -l,-b,-C,-n,-a,-d,--lines,--bytes,--additional-suffix,-f,--prefix=val --filter=shell ; splits files
	into new ones
dd,dcfldd : low read args=text do=dd ; copies blocks
ddrescue : medium read args=filter ; copies blocks
sync : low read args=text ; writes what is buffered to the disks
tar,bsdtar,gtar : medium write do=tar ; packs or unpacks
zip,zipcloak,zipnote,zipsplit : medium write args=archive -x,-i,-P,-n,-t,-tt,-b=val -T!medium,write="tests the archive" -TT,
	--unzip-command=shell -m!high,delete="deletes what it packed" ; packs files
unzip,funzip,cabextract,unsquashfs : medium write do=unzip -d,-P,-p,-O,-I=val ; unpacks an archive
unar,lsar : medium write do=unzip -o,-output-directory,-p,-password,-e,-E=val long ; unpacks an archive
7z,7za,7zr,7zz,unrar,rar : medium write do=unzip args=text long ; packs or unpacks an archive
gzip,gunzip,bzip2,bunzip2,xz,unxz,lzma,zstd,unzstd,lz4,compress,uncompress,pigz,brotli : medium write do=pack args=write -S,--suffix,-T,--threads,
	-b,-p=val -o,--output=write -c,--stdout,--to-stdout,-l,--list,-t,--test? ; packs or unpacks files in place
cpio,pax,ar : medium write args=write -F,-O,-f,-E=val -D,--directory=write --rsh-command=shell ; packs or unpacks an archive
zipinfo,zipgrep,zgrep,zegrep,zfgrep,zdiff,zcmp,zless,bzgrep,xzgrep,lzgrep : low read args=pattern -e,-f=val ; looks into packed files
locate,mlocate,plocate,whereis,which,whatis,apropos,man,info,tldr,help : low read args=text -P,--pager,-H,--html=shell -o,--output=write -C,--config-file!high,
	run-code="takes settings, which can name programs, from a file" -d,-n,-l,-S,-s,-M,-m=val ; looks something up
find,gfind : low read args=text do=find ; looks for files
fd,fdfind : low read args=text do=fd ; looks for files
date : low read args=text -f,--file=read -d,--date,-r,-I=val -s,--set!high,write="sets the clock" ; tells the time
cal,ncal,uptime,w,who,whoami,id,groups,users,logname,hostid,uname,arch,nproc,tty,locale,getconf,lsb_release,hostnamectl,timedatectl,
	loginctl,localectl,last,lastlog,finger,pinky,sw_vers,system_profiler,neofetch,fastfetch,screenfetch,inxi : low read args=text -d,--date,-f,
	-r,--reference=val -s,--set!high,write="sets the clock" ; shows something about this machine
hostnamectl,timedatectl,localectl set-hostname,set-time,set-timezone,set-ntp,set-locale,set-keymap : high write args=text ; changes settings
	of this machine
hostname,domainname : high write bare args=text -f,-i,-I,-d,-s,-A,-y,-a,--fqdn,--short,--domain,--ip-address,--all-ip-addresses? -F,
	--file=read ; shows or sets the name of this machine
loginctl terminate-session,terminate-user,kill-session,kill-user,enable-linger,lock-sessions : high signal args=text ; ends sessions or lets
	them live on
ps : low read do=ps args=text -o,-p,-u,-U,-g,-G,-t,-s,-C,-n,-O,-N,--sort,--format,--pid,--ppid,--user,--cols,--rows=val ; shows the programs that run
pgrep,pidof,pstree,top,htop,btop,atop,free,vmstat,iostat,mpstat,sar,pidstat,lscpu,lsmem,lsblk,lspci,lsusb,lsmod,lsof,blkid,findmnt,
	numastat,slabtop,dstat,nvidia-smi,sensors,acpi,modinfo,getent,lsns,lslocks,lsipc,ipcs,prlimit,pmap,pwdx,vm_stat,glances,iotop,nvtop : low
	read args=text -o,-p,-u,-U,-g,-G,-t,-s,-C,-n,-d,-i,-c,-e,-F,-b,-H,-P,-T,-N,--sort,--format=val ; shows the state of this machine
cut : low read -d,--delimiter,-f,--fields,-c,--characters,-b,--bytes,--output-delimiter=val ; cuts columns
uniq : low read args=filter -f,--skip-fields,-s,--skip-chars,-w,--check-chars=val ; drops lines that repeat
shuf : low read -n,--head-count,-i,--input-range=val -o,--output=write --random-source=read ; mixes lines
tr,seq,yes,factor,bc,dc,expr,numfmt,sleep,usleep,clear,reset,tput,banner,figlet,cowsay,fortune,lolcat,toilet,sl : low read
	args=text ; works through text or waits
fuser : low read args=text -k,-i,--kill!high,signal="kills processes" -n,-s=val ; looks who uses a file
printenv : medium secret do=printenv args=text ; prints variables, with the secrets among them
jq,gojq,jaq : low read do=query args=pattern -f,--from-file,-L=read --indent=val ; works through data
yq : low read do=query args=pattern --enable-system-operator,--security-enable-system-operator!high,run-code="lets the
	expression run commands" --from-file=read -p,--input-format,-o,--output-format,-I,--indent=val -i,--inplace!medium,
	write="edits the file in place" ; works through data
fx,dasel,xq,tomlq,gron,jless,xmllint,xmlstarlet,htmlq,pup,csvcut,csvlook,csvgrep,csvstat,csvsort,mlr,xsv,qsv,datamash,miller : low read -o,
	--output=write -i,--inplace,--in-place!medium,write="edits the file in place" ; works through data
`

// programsText are search, text and editors.
const programsText = `
grep,egrep,fgrep : low read args=pattern -e,--regexp,-A,--after-context,-B,--before-context,-C,--context,-m,--max-count,--include,--exclude,
	--exclude-dir,--label,-d,--directories,-D,--devices=val -f,--file,--exclude-from=read ; searches text
ugrep,ug,pcregrep,pcre2grep : low read args=pattern -e,--regexp,-A,-B,-C,-m,--include,--exclude,--exclude-dir,-g,--glob,-t,--file-type,-O,
	-J,--jobs=val -f,--file=read --pager,--filter=shell --save-config!medium,write="writes its settings" ; searches text
ack,ag,pt,sift : low read args=pattern -A,-B,-C,-m,-G,--ignore,--ignore-dir,--type,--depth,-p,--path-to-ignore=val --pager=shell
	--output=code ; searches text
rg,rga : low read do=sort args=pattern -e,--regexp,-A,-B,-C,-m,--max-count,--color,-g,--glob,--iglob,-t,--type,-T,--type-not,--type-add,-r,
	--replace,-d,--max-depth,-M,--max-columns,-j,--threads,--sort,--sortr,-E,--encoding,--max-filesize,--colors,--context-separator,--engine,
	--pre-glob=val -f,--file,--ignore-file=read --pre,--hostname-bin=val ; searches text
sort,gsort : low read do=sort -k,--key,-t,--field-separator,-S,--buffer-size,--parallel,--batch-size,--sort=val -T,--temporary-directory=val
	-o,--output=write --compress-program=val --files0-from,--random-source=read ; sorts text
sed,gsed,ssed : low read do=sed -e,--expression,-f,--file,-l,--line-length=val ; works through text
awk,gawk,mawk,nawk,goawk : low read do=awk -f,--file,-F,--field-separator,-v,--assign,-e,--source,-i,--include,-l,--load,-E,--exec=val ;
	works through text
vim,vi,nvim,view,ex,gvim,vimr,nano,pico,emacs,emacsclient,micro,hx,helix,joe,mcedit,ne,kak,kakoune,ed,red : medium write do=vim ; opens an
	editor, which needs a person
code,subl,atom,gedit,kate,mousepad,zed,cursor,idea,goland,pycharm : medium write args=write --goto,-g,--user-data-dir,--extensions-dir=val
	--install-extension!high,run-code="installs an extension" ; opens files in an editor
patch : medium write args=write -p,-D,-F,-B,-z,-Y,-V=val -d,--directory=write -i,--input=read -o,--output,-r,--reject-file=write -e,--ed!high,
	run-code="runs an ed script, which can run commands" --dry-run? ; applies a patch
dos2unix,unix2dos,fromdos,todos : medium write args=write ; changes line ends of files
sponge : medium write args=write ; writes what it reads to a file
tee : low read do=tee ; copies its input to files
pandoc,asciidoctor,markdown,pdftotext,pdfinfo,exiftool,identify,mediainfo,ffprobe,soxi : medium write -o,--output=write -f,-t,--from,--to,
	--metadata,--template,-V,-i,-show_entries,-v,-of,-print_format,-select_streams=val --filter,-F,--lua-filter=code long ; converts or looks
	at documents
convert,magick,montage,composite,sox,qpdf,pdfunite,pdftk,potrace : medium write args=copy -resize,-quality,-crop,-size,-density,-depth,-format,
	-colorspace,-rotate,-gravity,-geometry,-fill,-font,-pointsize,-draw,-annotate,-extent,-background=val -o,--output=write long ; converts media
	or documents
ffmpeg,mogrify,optipng,pngquant,jpegoptim,svgo : medium write args=write -i=read -o,--output,-out=write -f,-c,-b,-r,-s,-t,-ss,-to,-vf,-af,-map,
	-preset,-crf,-resize,-quality,-format,-vcodec,-acodec,-filter_complex,-threads,-loglevel,-v=val long ; converts media
inkscape,gs,cwebp,dot,gnuplot,mmdc,plantuml,wkhtmltopdf,libreoffice,soffice,rsvg-convert,gifsicle : medium write args=text -i=read -o,--output,-outfile=write long ;
	converts media or documents
xdg-mime,xdg-icon-resource,xdg-desktop-menu,xdg-desktop-icon,xdg-email : high write args=text ; changes what the desktop knows
xdg-mime query : low read args=text ; looks something up
open,xdg-open,gio,gnome-open,start,wslview : high run-code args=text ; opens something in a program of the desktop
pbcopy,xclip,xsel,wl-copy,clip : medium write args=text ; puts text on the clipboard
pbpaste,wl-paste : medium secret args=text ; reads the clipboard
notify-send,say,espeak,zenity,dialog,whiptail,logger,wall,write,mesg : medium write args=text ; shows or logs a message
screencapture,scrot,gnome-screenshot,import,grim,xwd : high secret args=write ; takes a picture of the screen
xdotool,ydotool,wtype,cliclick,xte : high run-code args=text ; types or clicks in other windows
gpg,gpg2,gpgv,age,rage,minisign,signify,ssh-add,ssh-agent,ssh-copy-id,pass,gopass,secret-tool,keyring,security,op,bw,lpass,vault,
	doppler,sops,chamber,aws-vault,kwallet-query : high secret args=text -o,--output,-f=write ; works with keys or passwords
ssh-keygen : high secret do=sshkey args=text -f=write -t,-b,-C,-N,-P,-E,-F,-I,-n,-O,-V,-s,-z,-R,-a,-m,-D,-Z=val ; works with keys
ssh-keyscan : medium network args=host ; asks machines for their keys
openssl : medium read do=openssl long -in,-inkey,-key,-CAkey,-out,-keyout,-writerand,-engine,-provider,-provider-path,-config,-CA,-CAfile,
	-days,-subj,-newkey,-name,-passin,-passout,-pass,-connect,-servername,-k,-K,-iv,-md,-text=val ; works with keys and certificates
openssl version,list,ciphers,help,errstr,prime,speed : low read args=text ; asks openssl for something
openssl dgst,sha256,sha1,sha512,md5,x509,crl,asn1parse,verify,base64,enc,rand : low read do=openssl args=read long -in,-out,-inform,
	-outform,-CAfile,-untrusted,-k,-K,-iv,-pass,-md,-writerand,-engine,-provider,-sign,-signkey,-hmac=val -d,-e,-a,-base64,-hex,-noout,-text? ;
	works through data or certificates
openssl s_client : high network do=openssl args=text long -connect,-servername,-CAfile,-cert,-key,-proxy=val ; talks to another machine
`
